import { randomBytes } from 'node:crypto';
import { ApiError, unavailable } from '../core/errors.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import { QueryBatcher } from '../storage/postgres/connection/query-batcher.ts';
import { answerChannelOf, type CallAnswer, callChannel, packRequest, unpackAnswer } from './call-message.ts';
import { TableQueue } from './table-queue.ts';

/** Calls of one node that wait for their answers, and the bytes of what they ask. */
export const callsMax = 1_000;
const callsBytesMax = 67_108_864;
/** Of one request. */
export const requestBytesMax = 16_777_216;
/** Of the requests of one statement. */
const statementBytesMax = 16_777_216;
/** Once its signal has spoken, an answer is there in no time, or nobody is there who could give one. */
const abortedMilliseconds = 5_000;
/** Answers taken by one statement: each may be large. */
const answersMax = 16;
/** Between two looks for what was asked or answered by nodes that are no more. */
const forgetMilliseconds = 60_000;

const ask = `
  WITH asked AS (
    INSERT INTO call (call_id, caller, request, until_ms)
    SELECT k.call_id, $1, k.request, ${clockMs} + k.milliseconds
    FROM unnest($2::bytea[], $3::bytea[], $4::bigint[]) AS k (call_id, request, milliseconds)
    RETURNING call_id)
  SELECT pg_notify('${callChannel}', '') FROM (SELECT count(*) FROM asked) AS one`;
/** What nobody has taken is not done at all; whoever has taken it is told. */
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
const forget = ['call', 'call_answer'].map(
  (table) => `DELETE FROM ${table} WHERE until_ms < ${clockMs} - $1`,
);

interface Asked {
  id: Buffer;
  request: Buffer;
  milliseconds: number;
}

/** How long a call may take, and when whoever asked does not want to wait any more. */
export interface CallOptions {
  timeoutMilliseconds: number;
  signal?: AbortSignal;
}

export interface RpcClientOptions {
  /** The first one, which holds what nodes share. */
  database: Database;
  log: Log;
}

/**
 * Asks the node that has the jobs, through the database: nodes need no way to each other besides that. A call is done
 * once or not at all; where its answer is lost, the caller cannot know which.
 */
export class RpcClient {
  readonly #options: RpcClientOptions;
  readonly #node = randomBytes(9).toString('hex');
  /** By the id of the call. */
  readonly #waiting = new Map<string, (answer: CallAnswer) => void>();
  readonly #asking: QueryBatcher<Asked, void>;
  readonly #cancelling: QueryBatcher<Buffer, void>;
  readonly #inbox: TableQueue;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;
  #isClosed = false;

  constructor(options: RpcClientOptions) {
    this.#options = options;
    const { database, log } = options;
    this.#asking = new QueryBatcher(
      async (asked) => {
        const columns = [
          asked.map(({ id }) => id),
          asked.map(({ request }) => request),
          asked.map(({ milliseconds }) => milliseconds),
        ];
        await database.query(ask, [this.#node, ...columns]);
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
    this.#inbox = new TableQueue({
      database,
      log,
      channel: answerChannelOf(this.#node),
      look: () => this.#takeAnswers(),
    });
    this.#timer = setInterval(() => void this.#forget(), forgetMilliseconds);
  }

  /**
   * The answer of that method there. Its signal is that of the method, which then ends its waiting: its answer still
   * comes. @throws ApiError what the method threw; unavailable when there was no answer in time.
   */
  async call(
    method: string,
    given: readonly unknown[],
    { timeoutMilliseconds, signal }: CallOptions,
  ): Promise<unknown> {
    if (this.#isClosed) throw unavailable('The server is stopping.');
    const isAborted = signal?.aborted === true;
    const request = packRequest({ method, given, isAborted });
    const { length: bytes } = request;
    if (bytes > requestBytesMax) {
      throw new ApiError('request_too_large', {
        msg: `Nodes ask each other ${requestBytesMax} bytes at most, this would be ${bytes}.`,
      });
    }
    if (this.#waiting.size >= callsMax || this.#bytes + bytes > callsBytesMax) {
      throw unavailable(
        `${callsMax} calls of this node wait for the node that has the jobs, or too large ones.`,
      );
    }
    const id = randomBytes(16);
    const asking = this.#asking.add({ id, request, milliseconds: Math.round(timeoutMilliseconds) });
    return new Promise((resolve, reject) => {
      const giveUp = (): void => settle({ error: noAnswer() });
      let timer = setTimeout(giveUp, timeoutMilliseconds);
      const onAbort = (): void => {
        clearTimeout(timer);
        timer = setTimeout(giveUp, abortedMilliseconds);
        // Behind the call itself, or the one who answers would see them the wrong way round.
        asking.then(() => this.#cancelling.add(id)).catch(() => {});
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
      asking.catch((error) => this.#settle(id, { error: error instanceof ApiError ? error : noAnswer() }));
    });
  }

  /** Calls that wait are not answered any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    const error = unavailable('The server is stopping.');
    for (const settle of [...this.#waiting.values()]) settle({ error });
    await this.#inbox.close();
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
          log.error({ err: error }, 'the answer of another node cannot be read');
          this.#settle(id, { error: new ApiError('internal_error') });
        }
      }
      taken = rows.length;
    }
  }

  async #forget(): Promise<void> {
    try {
      for (const text of forget) await this.#options.database.query(text, [forgetMilliseconds]);
    } catch {
      // The database has said why; the next time does it.
    }
  }
}

function keyOf(id: Buffer): string {
  return id.toString('hex');
}

function noAnswer(): ApiError {
  return unavailable('No node that has the jobs of all nodes has answered in time.', 5);
}
