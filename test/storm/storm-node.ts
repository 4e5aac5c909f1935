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
  #up: { server: TestServer; client: StormClient } | undefined;

  constructor(
    name: string,
    paths: readonly DatabasePath[],
    databases: readonly string[],
    config: Partial<Config>,
    findings: Findings,
  ) {
    this.name = name;
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
    const server = await TestServer.start(this.#config, this.#folder);
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

  async stop(): Promise<void> {
    const { server } = this;
    this.client?.close();
    const status = await server.stop();
    this.#findings.expect(
      status === 0,
      () => `the node ${this.name} ended with ${status}: ${server.stderr.slice(-2_000)}`,
    );
    rmSync(this.#folder, { recursive: true });
  }
}
