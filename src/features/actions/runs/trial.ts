import { ApiError } from '../../../core/errors.ts';
import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import { rangeUnder } from '../../../storage/tables/key-codec.ts';
import type { RunTrial, TestOutcome } from '../action-work.ts';
import type { Compiler, CompilerRequest } from '../compiler/compiler.ts';
import type { ActionConfig } from '../config.ts';
import {
  type Action,
  type ActionDraft,
  type ActionTest,
  recordsOf,
  type TestRecord,
} from '../declaration/action.ts';
import { type Addressing, mailsOf } from '../outbox/mails.ts';
import type { OutgoingMail } from '../outbox/outbox-entry.ts';
import type { ActionPool } from '../pool/pool.ts';
import type { ThreadSchedule } from '../queue/schedule.ts';
import type { RunError, RunReport } from '../sandbox/run.ts';
import { actionKey } from '../tables.ts';
import { limitsOf } from './action-executor.ts';
import { answerFor, readState, type Sources } from './action-state.ts';
import { testFailureOf } from './test-verdict.ts';
import { givenState, type StateBefore, TrialState } from './trial-state.ts';

export interface TrialOptions extends Sources, Addressing {
  shards: Sources['shards'] & Addressing['shards'];
  config: ActionConfig;
  pool: ActionPool;
  compiler: Compiler;
  schedule: ThreadSchedule;
}

/**
 * Maximum bytes of what a trial shows: mails, log and state. The answer is made on the main thread, on which everybody
 * waits, and a hundred records could each send as much as a run may.
 */
const shownBytesMax = 1_048_576;
/** What a mail or a line takes in the answer beside its own text. */
const shownItemBytes = 100;

/** What a run has to know of a draft, or of a version. */
type Triggered = Pick<ActionDraft, 'on'>;

/** The action that the code belongs to, deployed or not, and who tries it. */
export type Tried = CompilerRequest & { name: string };

/** Dry runs, which show what an action would do. They read the fleet as it is now. */
export class Trials {
  readonly #options: TrialOptions;

  constructor(options: TrialOptions) {
    this.#options = options;
  }

  /** Compiles the source to JavaScript. @throws ApiError invalid_action. */
  async compile(tried: Tried, { source, language }: ActionDraft): Promise<string> {
    const { pool, compiler, config, schedule } = this.#options;
    const { fleetId, name, asker } = tried;
    const code = language === 'typescript' ? await compiler.translate(tried, source) : source;
    const error = await schedule.take(fleetId, asker, () => pool.load({ code, name }, limitsOf(config)));
    if (error !== undefined) throw new ApiError('invalid_action', { msg: error.msg });
    return code;
  }

  async test(tried: Tried, draft: ActionDraft, code: string): Promise<TestOutcome[]> {
    const outcomes: TestOutcome[] = [];
    for (const [index, test] of draft.tests.entries()) {
      const { reason } = await this.tryTest(tried, draft, code, test);
      outcomes.push({ test: index + 1, reason });
    }
    return outcomes;
  }

  /** Runs code on a record, with the state of `action`, if any. */
  try(
    tried: Tried,
    draft: Triggered,
    code: string,
    record: TestRecord,
    action: Action | undefined,
  ): Promise<RunTrial> {
    return this.#sequence(tried, draft, code, [record], this.#stateOf(action));
  }

  /** Runs code on the records of a test, with the state that it gives. */
  async tryTest(tried: Tried, draft: Triggered, code: string, test: ActionTest): Promise<RunTrial> {
    const trial = await this.#sequence(tried, draft, code, recordsOf(test), givenState(test.state));
    return { ...trial, reason: testFailureOf(test, trial) };
  }

  #stateOf(action: Action | undefined): StateBefore {
    if (action === undefined) return givenState();
    const { journal } = this.#options;
    const id = actionKey(action.id);
    return {
      read: (key) => {
        journal.refresh();
        return readState(journal.tables, id, key, new Map());
      },
      count: () => journal.tables.state.count(rangeUnder(id)),
    };
  }

  /** Runs code on one record after the other, up to the first that fails. */
  async #sequence(
    tried: Tried,
    draft: Triggered,
    code: string,
    records: readonly TestRecord[],
    before: StateBefore,
  ): Promise<RunTrial> {
    const state = new TrialState(before);
    const mails: RunTrial['mails'][number][] = [];
    const log: string[] = [];
    const spent = { cpuMilliseconds: 0, wallMilliseconds: 0 };
    let error: RunError | undefined;
    let count = 0;
    let bytes = 0;
    for (const record of records) {
      count += 1;
      const report = await this.#run(tried, draft, code, record, state);
      log.push(...report.log);
      spent.cpuMilliseconds += report.cpuMilliseconds;
      spent.wallMilliseconds += report.wallMilliseconds;
      const resolved = await mailsOf(tried.fleetId, report, this.#options);
      const { actionStateKeysMax } = this.#options.config.settings.current;
      error = resolved.error ?? state.write(report.writes, actionStateKeysMax);
      if (error !== undefined) break;
      bytes += bytesOf(resolved.mails, report.log);
      if (bytes + state.bytes > shownBytesMax) {
        error = trialTooLarge;
        break;
      }
      for (const mail of resolved.mails) mails.push({ record: count, ...describeMail(mail) });
    }
    return { error, reason: undefined, records: count, mails, state: state.writes, log, ...spent };
  }

  #run(
    { fleetId, name, asker }: Tried,
    draft: Triggered,
    code: string,
    input: TestRecord,
    state: TrialState,
  ): Promise<RunReport> {
    const { pool, config, schedule } = this.#options;
    const [first] = draft.on;
    const record = {
      id: formatUuid(generateUuid()),
      kind: input.kind ?? first?.kind ?? 'message',
      device: input.device,
      name: input.name ?? first?.schema ?? '',
      payload: JSON.stringify(input.payload),
      time: new Date().toISOString(),
    };
    const request = { key: undefined, code, name, record, limits: limitsOf(config) };
    const answer = answerFor(fleetId, (key) => state.read(key), this.#options);
    return schedule.take(fleetId, asker, () => pool.run(request, answer));
  }
}

const trialTooLarge: RunError = {
  code: 'trial_too_large',
  msg: `The mails, state and log of a trial may be ${shownBytesMax} bytes in all: try fewer records, or smaller mails.`,
};

/** What the mails and the log of one run take in the answer. */
function bytesOf(mails: readonly OutgoingMail[], log: readonly string[]): number {
  const sizes = [
    ...mails.map(({ name, payload }) => name.length + payload.length),
    ...log.map(({ length }) => length),
  ];
  return sizes.reduce((sum, size) => sum + size + shownItemBytes, 0);
}

function describeMail({
  device,
  name,
  payload,
  ordinal: _,
  ...settings
}: OutgoingMail): Omit<RunTrial['mails'][number], 'record'> {
  return { device: deviceIdOf(device), name, payload: payload.toString('utf8'), ...settings };
}

/** The error that reports failed tests. */
export function trialFailureOf(failed: readonly TestOutcome[]): ApiError {
  const sentences = failed.map(({ test, reason }) => `Test ${test} failed: ${reason}`);
  return new ApiError('action_test_failed', { msg: sentences.join('\n').slice(0, 4_000) });
}
