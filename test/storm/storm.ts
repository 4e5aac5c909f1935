import { rmSync } from 'node:fs';
import { sleep } from '../../src/core/async.ts';
import type { Config } from '../../src/server/configuration/config.ts';
import { anyObject, createFleet } from '../harness/devices/device.ts';
import { fleetpost } from '../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { StormClient } from './client.ts';
import type { Findings } from './findings.ts';
import { Ledger } from './ledger.ts';
import type { Random } from './random.ts';
import { Relay, relayConfig } from './relay.ts';
import { Subject } from './subject.ts';

/** Devices of one client each, which knows every answer beforehand; and mailboxes that many work on at once. */
const exclusiveDevices = 30;
const hotMailboxes = 3;
const clientsPerHotMailbox = 8;

export interface StormOptions {
  shards: number;
  seed: number;
  config?: Partial<Config>;
  /** How long the load of a round lasts at least, and at most. */
  loadMsMin: number;
  loadMsMax: number;
  /** Reads the log after each end, before its retention takes anything from it. */
  looksEachTime?: boolean;
  /** Called under full load, just before its end. */
  beforeEnd?(server: TestServer): void;
}

/** A start takes a second on an idle machine. */
const startMsMax = 1_500;
/** How often the server forgets what the mail of actions was sent for, and how near to that a kill aims. */
const upkeepMs = 5_000;
const upkeepNearMs = 400;
/** How often the actions go into the next round with what the last one has left them to do. */
const backlogChance = 0.25;

const kills = ['under load', 'right after an answer', 'in its shutdown', 'in its upkeep'] as const;
type End = (typeof kills)[number] | 'regular end';

/** A server under full load that is killed again and again, and what must be left of it each time. */
export class Storm {
  server: TestServer;
  readonly #options: StormOptions;
  readonly #folder: string;
  readonly #ledger: Ledger;
  readonly #subjects: Subject[] = [];
  #relay: Relay | undefined;
  #client: StormClient;
  #readyMs = performance.now();
  #isEnding = false;
  #onAnswer = (): void => {};

  private constructor(options: StormOptions, folder: string, server: TestServer, ledger: Ledger) {
    this.#options = options;
    this.#folder = folder;
    this.#ledger = ledger;
    this.server = server;
    this.#client = new StormClient(server);
  }

  get findings(): Findings {
    return this.#ledger.findings;
  }

  /** Starts on a data folder of its own, which is killed while it is made, too. */
  static async start(options: StormOptions): Promise<Storm> {
    const folder = temporaryFolder();
    const ledger = new Ledger(options.seed, true);
    for (let time = 0; time < 2; time += 1) await killStart(options, folder, ledger.random);
    const storm = new Storm(options, folder, await startServer(options, folder), ledger);
    storm.findings.count('kill -9 in its first start', 2);
    await storm.#createSubjects();
    return storm;
  }

  /** Load, a kill, perhaps more kills while it starts again, and then: is everything as it must be? */
  async round(end: End = this.#ledger.random.pick(kills) ?? 'under load'): Promise<void> {
    const { findings } = this;
    this.#isEnding = false;
    const clients = this.#startClients();
    await this.#end(end);
    await Promise.all(clients);
    this.#client.close();
    findings.count(end === 'regular end' ? end : `kill -9 ${end}`);
    const errors = this.server.stderr.split('\n').filter((line) => /"level":[56]0/.test(line));
    findings.expect(errors.length === 0, () => `the server logged: ${errors.join('\n')}`);
    // Half of the time the next start is the first to open what the kill has left.
    if (this.#options.looksEachTime || this.#ledger.random.next() < 0.5)
      await this.#ledger.records.check(this.server.report);
    while (this.#ledger.random.next() < 0.25) {
      await killStart(this.#options, this.#folder, this.#ledger.random);
      findings.count('kill -9 in its start');
    }
    this.server = await startServer(this.#options, this.#folder);
    this.#readyMs = performance.now();
    this.#client = new StormClient(this.server);
    await this.#resume();
    if (this.#ledger.random.next() < backlogChance) findings.count('actions: left to do in the next round');
    else await this.#relay?.check(this.#client);
  }

  /** A regular end, and a last look at all that is stored. */
  async finish(): Promise<void> {
    await this.#relay?.check(this.#client);
    this.#client.close();
    this.server.process.kill('SIGTERM');
    await this.#expectRegularEnd();
    await this.#ledger.records.check(this.server.report);
    const { status, stderr } = await fleetpost(['verify', '--data', this.#folder]);
    this.findings.expect(status === 0, () => `fleetpost verify ended with ${status}: ${stderr}`);
    rmSync(this.#folder, { recursive: true });
  }

  async #createSubjects(): Promise<void> {
    const fleet = await createFleet(this.server);
    await fleet.putSchema('datapoint', 'any', anyObject);
    await fleet.putSchema('message', 'any', anyObject);
    for (let index = 0; index < exclusiveDevices + hotMailboxes; index += 1) {
      const isExclusive = index < exclusiveDevices;
      const device = await fleet.createDevice();
      this.#subjects.push(new Subject(device, isExclusive, this.#ledger));
    }
    this.#relay = await Relay.create(this.server, this.#ledger);
  }

  #startClients(): Promise<void>[] {
    const sensors = (this.#relay?.clients(this.#client) ?? []).map((act) => this.#run(act));
    const others = this.#subjects.flatMap((subject) => {
      if (subject.isExclusive) return [this.#run(() => subject.act(this.#client))];
      return Array.from({ length: clientsPerHotMailbox }, (_, index) =>
        this.#run(() => (index % 2 === 0 ? subject.enqueue(this.#client) : subject.settle(this.#client))),
      );
    });
    return [...sensors, ...others];
  }

  /** Repeats `act` until the server is gone. */
  async #run(act: () => Promise<void>): Promise<void> {
    try {
      for (;;) {
        await act();
        this.#onAnswer();
      }
    } catch (error) {
      this.findings.expect(this.#isEnding, () => `a request failed while the server was up: ${error}`);
    }
  }

  async #end(end: End): Promise<void> {
    const { loadMsMin, loadMsMax } = this.#options;
    await sleep(this.#ledger.random.integer(loadMsMin, loadMsMax));
    this.#options.beforeEnd?.(this.server);
    if (end === 'right after an answer') {
      let answers = this.#ledger.random.integer(1, 100);
      await new Promise<void>((resolve) => {
        this.#onAnswer = () => {
          answers -= 1;
          if (answers > 0) return;
          this.#isEnding = true;
          this.server.process.kill('SIGKILL');
          resolve();
        };
      });
      this.#onAnswer = () => {};
    } else if (end === 'in its upkeep') {
      const upMs = performance.now() - this.#readyMs;
      await sleep(upkeepMs - (upMs % upkeepMs) - this.#ledger.random.integer(0, upkeepNearMs));
    } else if (end !== 'under load') {
      this.#isEnding = true;
      this.server.process.kill('SIGTERM');
      if (end === 'regular end') return this.#expectRegularEnd();
      await sleep(this.#ledger.random.integer(0, 300));
    }
    this.#isEnding = true;
    if (this.server.isRunning) await this.server.kill();
    else await this.server.ended();
  }

  async #expectRegularEnd(): Promise<void> {
    const status = await this.server.ended();
    this.findings.expect(status === 0, () => `the server ended with ${status}: ${this.server.stderr}`);
  }

  async #resume(): Promise<void> {
    await Promise.all(this.#subjects.map((subject) => subject.resume(this.#client)));
    for (const record of this.#ledger.records.unanswered()) {
      const subject = this.#subjects.find(({ device }) => device.deviceId === record.deviceId);
      await subject?.repeat(this.#client, record);
    }
  }
}

function startServer({ config, shards }: StormOptions, folder: string): Promise<TestServer> {
  return TestServer.start({ ...relayConfig, ...config, shards }, folder);
}

/** A start that is killed before, or just when, it is ready. */
function killStart({ shards }: StormOptions, folder: string, random: Random): Promise<void> {
  return TestServer.killStart({ shards, logLevel: 'silent' }, folder, random.integer(100, startMsMax));
}
