import { randomBytes } from 'node:crypto';
import { ApiError, unavailable } from '../core/errors.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import { QueryBatcher } from '../storage/postgres/connection/query-batcher.ts';
import { answerChannelOf, type CallAnswer, callChannel, packRequest, unpackAnswer } from './call-message.ts';
import { TableQueue } from './table-queue.ts';

/** Limits for the calls of one node in flight, and the bytes of their requests. */
export const callsMax = 1_000;
const callsBytesMax = 67_108_864;
export const requestBytesMax = 16_777_216;
const statementBytesMax = 16_777_216;
/** Timeout once the caller has aborted: an answer comes at once, or there is no leader. */
const abortedMilliseconds = 5_000;
/** Answers per statement: each may be large. */
const answersMax = 16;
/** Interval for removing requests and answers of dead nodes. */
const pruneMilliseconds = 60_000;

const insertCalls = `
  WITH calls AS (
    INSERT INTO call (call_id, caller, request, until_ms)
    SELECT k.call_id, $1, k.request, ${clockMs} + k.milliseconds
    FROM unnest($2::bytea[], $3::bytea[], $4::bigint[]) AS k (call_id, request, milliseconds)
    RETURNING call_id)
  SELECT pg_notify('${callChannel}', '') FROM (SELECT count(*) FROM calls) AS one`;
/** A call that is not taken yet is not run at all; the leader that has taken it is notified. */
const cancel = `
  WITH cancelled AS (
    INSERT INTO call (call_id, caller, request, until_ms)
    SELECT k.call_id, $1, NULL, ${clockMs} + $3 FROM unnest($2::bytea[]) AS k (call_id)
    ON CONFLICT (call_id) DO UPDATE SET request = NULL
    RETURNING call_id)
  SELECT pg_notify('${callChannel}', '') FROM (SELECT count(*) FROM cancelled) AS one`;
const takeAnswers = `
  DELETE FROM call_answer WHERE call_id IN
    (SELECT call_id FROM call_answer WHERE caller = $1 LIMIT ${answersMax})
  RETURNING call_id, answer`;
const prune = ['call', 'call_answer'].map((table) => `DELETE FROM ${table} WHERE until_ms < ${clockMs} - $1`);

interface PendingCall {
  id: Buffer;
  request: Buffer;
  milliseconds: number;
}

/** Timeout of a call, and the signal by which the caller stops waiting. */
export interface CallOptions {
  timeoutMilliseconds: number;
  signal?: AbortSignal;
}

export interface RpcClientOptions {
  /** The first database, which holds what nodes share. */
  database: Database;
  log: Log;
}

/**
 * Calls the leader through the database: nodes need no other connection to each other. A call runs at most once; if its
 * answer is lost, the caller cannot know whether it ran.
 */
export class RpcClient {
  readonly #options: RpcClientOptions;
  readonly #node = randomBytes(9).toString('hex');
  /** Settles a call, by its id. */
  readonly #waiting = new Map<string, (answer: CallAnswer) => void>();
  readonly #calling: QueryBatcher<PendingCall, void>;
  readonly #cancelling: QueryBatcher<Buffer, void>;
  readonly #queue: TableQueue;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;
  #isClosed = false;

  constructor(options: RpcClientOptions) {
    this.#options = options;
    const { database, log } = options;
    this.#calling = new QueryBatcher(
      async (calls) => {
        const columns = [
          calls.map(({ id }) => id),
          calls.map(({ request }) => request),
          calls.map(({ milliseconds }) => milliseconds),
        ];
        await database.query(insertCalls, [this.#node, ...columns]);
        return [];
      },
      1,
      database.timeoutMilliseconds,
      { of: ({ request }) => request.length, max: statementBytesMax },
    );
    this.#cancelling = new QueryBatcher(
      async (ids) => {
        await database.query(cancel, [this.#node, ids, abortedMilliseconds]);
        return [];
      },
      1,
      database.timeoutMilliseconds,
    );
    this.#queue = new TableQueue({
      database,
      log,
      channel: answerChannelOf(this.#node),
      poll: () => this.#takeAnswers(),
    });
    this.#timer = setInterval(() => void this.#prune(), pruneMilliseconds);
  }

  /**
   * Calls a method of the leader. The signal aborts the method, which then stops waiting: its answer still comes.
   * @throws ApiError of the method; unavailable without an answer in time
   */
  async call(
    method: string,
    params: readonly unknown[],
    { timeoutMilliseconds, signal }: CallOptions,
  ): Promise<unknown> {
    if (this.#isClosed) throw unavailable('The server is stopping.');
    const isAborted = signal?.aborted === true;
    const request = packRequest({ method, params, isAborted });
    const { length: bytes } = request;
    if (bytes > requestBytesMax) {
      throw new ApiError('request_too_large', {
        msg: `The request to the leader is too large: ${bytes} bytes, at most ${requestBytesMax}.`,
      });
    }
    if (this.#waiting.size >= callsMax || this.#bytes + bytes > callsBytesMax) {
      throw unavailable(
        `Too many calls of this node wait for the leader (at most ${callsMax}), or too large ones. Retry later.`,
      );
    }
    const id = randomBytes(16);
    const calling = this.#calling.add({ id, request, milliseconds: Math.round(timeoutMilliseconds) });
    return new Promise((resolve, reject) => {
      const giveUp = (): void => settle({ error: noAnswer() });
      let timer = setTimeout(giveUp, timeoutMilliseconds);
      const onAbort = (): void => {
        clearTimeout(timer);
        timer = setTimeout(giveUp, abortedMilliseconds);
        // After the call itself, or the leader would see them in the wrong order.
        calling.then(() => this.#cancelling.add(id)).catch(() => {});
      };
      if (!isAborted) signal?.addEventListener('abort', onAbort, { once: true });
      const settle = (answer: CallAnswer): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.#waiting.delete(keyOf(id));
        this.#bytes -= bytes;
        if ('error' in answer) reject(answer.error);
        else resolve(answer.value);
      };
      this.#waiting.set(keyOf(id), settle);
      this.#bytes += bytes;
      calling.catch((error) => this.#settle(id, { error: error instanceof ApiError ? error : noAnswer() }));
    });
  }

  /** Fails all calls in flight. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    const error = unavailable('The server is stopping.');
    for (const settle of [...this.#waiting.values()]) settle({ error });
    await this.#queue.close();
  }

  #settle(id: Buffer, answer: CallAnswer): void {
    this.#waiting.get(keyOf(id))?.(answer);
  }

  async #takeAnswers(): Promise<void> {
    if (this.#waiting.size === 0) return;
    const { database, log } = this.#options;
    for (let taken = answersMax; taken === answersMax; ) {
      const rows = await database.query<{ call_id: Buffer; answer: Buffer }>(takeAnswers, [this.#node]);
      for (const { call_id: id, answer } of rows) {
        try {
          this.#settle(id, unpackAnswer(answer));
        } catch (error) {
          log.error({ err: error }, 'an answer of the leader is unreadable');
          this.#settle(id, { error: new ApiError('internal_error') });
        }
      }
      taken = rows.length;
    }
  }

  async #prune(): Promise<void> {
    try {
      for (const text of prune) await this.#options.database.query(text, [pruneMilliseconds]);
    } catch {
      // Logged by the database; the next run retries.
    }
  }
}

function keyOf(id: Buffer): string {
  return id.toString('hex');
}

function noAnswer(): ApiError {
  return unavailable('No leader answered in time. Retry later.', 5);
}
