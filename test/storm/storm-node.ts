import { rmSync } from 'node:fs';
import type { Config } from '../../src/server/configuration/config.ts';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import type { DatabasePath } from '../harness/postgres/database-path.ts';
import { TestServer } from '../harness/server/server.ts';
import { StormClient } from './client.ts';
import type { Findings } from './findings.ts';

/** A server process of several on the same databases, with a folder and ways to them of its own. */
export class StormNode {
  readonly name: string;
  readonly #paths: readonly DatabasePath[];
  readonly #config: Partial<Config>;
  readonly #findings: Findings;
  readonly #folder = temporaryFolder();
  #program: string | undefined;
  #up: { server: TestServer; client: StormClient } | undefined;

  constructor(
    name: string,
    paths: readonly DatabasePath[],
    databases: readonly string[],
    config: Partial<Config>,
    findings: Findings,
    program?: string,
  ) {
    this.name = name;
    this.#program = program;
    this.#paths = paths;
    const shards = paths.map(
      ({ host, port }, index) => `postgres://postgres@${host}:${port}/${databases[index]}`,
    );
    this.#config = { ...config, store: { engine: 'postgres', shards } };
    this.#findings = findings;
  }

  get config(): Partial<Config> {
    return this.#config;
  }

  /** Undefined while it is down. */
  get client(): StormClient | undefined {
    return this.#up?.client;
  }

  get server(): TestServer {
    if (this.#up === undefined) throw new Error(`the node ${this.name} is down`);
    return this.#up.server;
  }

  async start(): Promise<void> {
    const server = await TestServer.start(this.#config, this.#folder, { program: this.#program });
    this.#up = { server, client: new StormClient(server) };
  }

  async kill(): Promise<void> {
    const { server } = this;
    this.check();
    const client = this.client;
    this.#up = undefined;
    await server.kill();
    client?.close();
  }

  /** It lives and has logged no error: a database that is away is a warning, and nothing of the audit log is lost. */
  check(): void {
    const { server } = this;
    this.#findings.expect(
      server.isRunning,
      () => `the node ${this.name} has ended by itself: ${server.stderr.slice(-2_000)}`,
    );
    const errors = server.stderr.split('\n').filter((line) => /"level":[56]0/.test(line));
    for (const line of new Set(errors.map((text) => text.replace(/"time":\d+,/, '')))) {
      this.#findings.violation(`the node ${this.name} logged: ${line.slice(0, 600)}`);
    }
  }

  cut(): void {
    for (const path of this.#paths) path.cut();
  }

  mend(): void {
    for (const path of this.#paths) path.mend();
  }

  /** Ends in order and starts again with the program of today. */
  async upgrade(): Promise<void> {
    this.check();
    await this.#end();
    this.#program = undefined;
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#end();
    rmSync(this.#folder, { recursive: true });
  }

  async #end(): Promise<void> {
    const { server, client } = this;
    const ended = server.stop();
    this.#up = undefined;
    const status = await ended;
    client?.close();
    this.#findings.expect(
      status === 0,
      () => `the node ${this.name} ended with ${status}: ${server.stderr.slice(-2_000)}`,
    );
  }
}
