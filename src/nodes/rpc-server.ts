import { setTimeout as elapse } from 'node:timers/promises';
import { sleep } from '../core/async.ts';
import { ApiError, unavailable } from '../core/errors.ts';
import { type Log, logFailure } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import { QueryBatcher } from '../storage/postgres/connection/query-batcher.ts';
import { answerChannelOf, type CallRequest, callChannel, packAnswer, unpackRequest } from './call-message.ts';
import { TableQueue } from './table-queue.ts';

/** Maximum calls in flight, of all nodes; further ones are answered `unavailable`. */
const callsInFlightMax = 2_000;
/** Maximum size of an answer: a batch of a consumer with its overhead fits. */
export const answerBytesMax = 134_217_728;
/** Maximum bytes of the answers of one statement; its first one may be larger. */
const statementBytesMax = 16_777_216;
/** Calls per statement. */
const takenMax = 64;
const answerAttemptsMax = 5;
const answerAgainMilliseconds = 500;
const closeMilliseconds = 5_000;

/** Each call is taken by one node only; the shortest deadline first. */
const take = `
  DELETE FROM call WHERE call_id IN
    (SELECT call_id FROM call ORDER BY until_ms LIMIT ${takenMax} FOR UPDATE SKIP LOCKED)
  RETURNING call_id, caller, request, until_ms - ${clockMs} AS left_ms`;
const insertAnswers = `
  WITH inserted AS (
    INSERT INTO call_answer (call_id, caller, answer, until_ms)
    SELECT k.call_id, k.caller, k.answer, ${clockMs} + k.milliseconds
    FROM unnest($1::bytea[], $2::text[], $3::bytea[], $4::bigint[]) AS k (call_id, caller, answer, milliseconds)
    ON CONFLICT DO NOTHING RETURNING caller)
  SELECT pg_notify('${answerChannelOf('')}' || one.caller, '') FROM (SELECT DISTINCT caller FROM inserted) AS one`;

/** A method of the leader. `signal` aborts when nobody waits for its answer any more. */
export type Method = (params: readonly unknown[], signal: AbortSignal) => Promise<unknown>;

interface PendingAnswer {
  id: Buffer;
  caller: string;
  answer: Buffer;
  leftMs: number;
}

type TakenCall = {
  call_id: Buffer;
  caller: string;
  // Null: the caller has cancelled.
  request: Buffer | null;
  left_ms: number;
};

export interface RpcServerOptions {
  /** The first one, which holds what nodes share. */
  database: Database;
  /** All callable methods, by name. */
  methods: ReadonlyMap<string, Method>;
  log: Log;
}

/** Serves the calls of all nodes, while this one is the leader. */
export class RpcServer {
  readonly #options: RpcServerOptions;
  readonly #inFlight = new Map<string, { controller: AbortController; ended: Promise<void> }>();
  readonly #answers: QueryBatcher<PendingAnswer, void>;
  readonly #queue: TableQueue;

  constructor(options: RpcServerOptions) {
    this.#options = options;
    const { database, log } = options;
    this.#answers = new QueryBatcher(
      async (answers) => {
        const columns = [
          answers.map(({ id }) => id),
          answers.map(({ caller }) => caller),
          answers.map(({ answer }) => answer),
          answers.map(({ leftMs }) => Math.round(leftMs)),
        ];
        await database.query(insertAnswers, columns);
        return [];
      },
      1,
      database.timeoutMilliseconds,
      { of: ({ answer }) => answer.length, max: statementBytesMax },
    );
    this.#queue = new TableQueue({ database, log, channel: callChannel, poll: () => this.#take() });
  }

  /** Takes no more calls, aborts those in flight, and settles when they are answered or take too long. */
  async close(): Promise<void> {
    await this.#queue.close();
    for (const { controller } of this.#inFlight.values()) controller.abort();
    const ended = Promise.all([...this.#inFlight.values()].map((call) => call.ended));
    await Promise.race([ended, elapse(closeMilliseconds, undefined, { ref: false })]);
  }

  async #take(): Promise<void> {
    for (let taken = takenMax; taken === takenMax; ) {
      const rows = await this.#options.database.query<TakenCall>(take);
      for (const call of rows) this.#begin(call);
      taken = rows.length;
    }
  }

  #begin(call: TakenCall): void {
    const key = call.call_id.toString('hex');
    if (call.request === null) {
      this.#inFlight.get(key)?.controller.abort();
      return;
    }
    // The caller has given up.
    if (call.left_ms <= 0) return;
    const endsMs = performance.now() + call.left_ms;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), call.left_ms);
    const ended = this.#answer(call.request, key, controller)
      .then((answer) => this.#sendAnswer(call, answer, endsMs))
      .finally(() => {
        clearTimeout(timer);
        this.#inFlight.delete(key);
      });
    this.#inFlight.set(key, { controller, ended });
  }

  async #answer(bytes: Buffer, key: string, controller: AbortController): Promise<Buffer> {
    let request: CallRequest | undefined;
    try {
      request = unpackRequest(bytes);
      if (this.#inFlight.size >= callsInFlightMax) {
        throw unavailable(
          `Too many calls in flight at the leader (at most ${callsInFlightMax}). Retry later.`,
        );
      }
      const method = this.#options.methods.get(request.method);
      // The caller may run another version.
      if (method === undefined)
        throw unavailable('The leader does not know this method. Run the same version on all nodes.');
      if (request.isAborted) controller.abort();
      return checked(packAnswer({ value: await method(request.params, controller.signal) }));
    } catch (error) {
      const known = error instanceof ApiError ? error : this.#failed(error, key, request?.method);
      return packAnswer({ error: known });
    }
  }

  /** A repeated insert of an answer leaves the first one. */
  async #sendAnswer({ call_id: id, caller }: TakenCall, answer: Buffer, endsMs: number): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const leftMs = endsMs - performance.now();
      if (leftMs <= 0) return;
      try {
        await this.#answers.add({ id, caller, answer, leftMs });
        return;
      } catch (error) {
        if (attempt === answerAttemptsMax) {
          logFailure(this.#options.log, error, 'sending an answer to another node failed; answer lost');
          return;
        }
      }
      await sleep(answerAgainMilliseconds);
    }
  }

  /** Logs under the id of the call, which is in the log of the caller too. */
  #failed(error: unknown, call: string, method: string | undefined): ApiError {
    this.#options.log.error({ err: error, request_id: call, method }, 'a call of another node failed');
    return new ApiError('internal_error', { requestId: call });
  }
}

/** @throws ApiError limit_reached for an answer that is too large */
function checked(answer: Buffer): Buffer {
  if (answer.length <= answerBytesMax) return answer;
  throw new ApiError('limit_reached', {
    msg: `The answer of the leader is too large: ${answer.length} bytes, at most ${answerBytesMax}. Ask for less at once.`,
  });
}
