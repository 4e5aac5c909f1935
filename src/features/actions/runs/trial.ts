import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../../../core/errors.ts';
import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import type { ActionConfig } from '../config.ts';
import type { Action, ActionDraft, ActionTest } from '../declaration/action.ts';
import { type Addressing, mailsOf } from '../outbox/mails.ts';
import type { OutgoingMail } from '../outbox/outbox-entry.ts';
import type { ActionPool } from '../pool/pool.ts';
import type { RunTrial, TestOutcome } from '../service.ts';
import { actionKey } from '../tables.ts';
import { limitsOf } from './action-executor.ts';
import { answerFor, type Sources } from './action-state.ts';

export interface TrialOptions extends Sources, Addressing {
  shards: Sources['shards'] & Addressing['shards'];
  config: ActionConfig;
  pool: ActionPool;
  /** Runs `work` when it has a thread, and settles like it. */
  onThread<T>(fleetId: string, work: () => Promise<T>): Promise<T>;
}

/** The action that the code belongs to, deployed or not. */
export interface Tried {
  fleetId: string;
  name: string;
}

/** Dry runs, which show what an action would do. They read the fleet as it is now. */
export class Trials {
  readonly #options: TrialOptions;

  constructor(options: TrialOptions) {
    this.#options = options;
  }

  /** Compiles the source to JavaScript. @throws ApiError invalid_action. */
  async compile({ fleetId, name }: Tried, { source, language }: ActionDraft): Promise<string> {
    const { pool, config, onThread } = this.#options;
    const compiled = await onThread(fleetId, () =>
      pool.compile({ source, language, name }, limitsOf(config)),
    );
    if ('error' in compiled) throw new ApiError('invalid_action', { msg: compiled.error.msg });
    return compiled.code;
  }

  async test(tried: Tried, draft: ActionDraft, code: string): Promise<TestOutcome[]> {
    const outcomes: TestOutcome[] = [];
    for (const [index, test] of draft.tests.entries()) {
      const trial = await this.try(tried, draft, code, test.record, undefined);
      outcomes.push({ test: index + 1, reason: reasonOf(test, trial) });
    }
    return outcomes;
  }

  /** Runs code on a record, with the state of `action`, if any. */
  async try(
    { fleetId, name }: Tried,
    draft: ActionDraft,
    code: string,
    input: ActionTest['record'],
    action: Action | undefined,
  ): Promise<RunTrial> {
    const { pool, config, onThread } = this.#options;
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
    const answer = answerFor(fleetId, action && actionKey(action.id), new Map(), this.#options);
    const report = await onThread(fleetId, () => pool.run(request, answer));
    const { error, mails } = await mailsOf(fleetId, report, this.#options);
    return {
      error,
      mails: mails.map(describeMail),
      state: report.writes,
      log: report.log,
      cpuMilliseconds: report.cpuMilliseconds,
      wallMilliseconds: report.wallMilliseconds,
    };
  }
}

function describeMail({ device, name, payload, ttlSeconds }: OutgoingMail): RunTrial['mails'][number] {
  const ttl = ttlSeconds === undefined ? {} : { ttlSeconds };
  return { device: deviceIdOf(device), name, payload: payload.toString('utf8'), ...ttl };
}

function reasonOf({ mails: expected }: ActionTest, { error, mails }: RunTrial): string | undefined {
  if (error !== undefined) return `${error.code}: ${error.msg}`;
  if (expected === undefined) return undefined;
  const sent = mails.map(({ device, name, payload }) => ({
    to: device,
    name,
    payload: JSON.parse(payload) as unknown,
  }));
  if (isDeepStrictEqual(sent, expected)) return undefined;
  return `It would send ${JSON.stringify(sent).slice(0, 500)}, not ${JSON.stringify(expected).slice(0, 500)}.`;
}

/** The error that reports failed tests. */
export function trialFailureOf(failed: readonly TestOutcome[]): ApiError {
  const sentences = failed.map(({ test, reason }) => `Test ${test} failed: ${reason}`);
  return new ApiError('action_test_failed', { msg: sentences.join('\n').slice(0, 4_000) });
}
