import { setTimeout as elapse } from 'node:timers/promises';
import { sleep } from '../core/async.ts';
import { ApiError, unavailable } from '../core/errors.ts';
import { type Log, logFailure } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import { clockMs } from '../storage/postgres/connection/database-time.ts';
import { QueryBatcher } from '../storage/postgres/connection/query-batcher.ts';
import { answerChannelOf, type CallRequest, callChannel, packAnswer, unpackRequest } from './call-message.ts';
import { TableQueue } from './table-queue.ts';

/** Calls in hand at once, of all nodes; one more is answered `unavailable`. */
const callsInHandMax = 2_000;
/** Of one answer: a batch of a consumer with all that belongs to it fits in. */
export const answerBytesMax = 134_217_728;
/** Of the answers of one statement, but for its first. */
const statementBytesMax = 16_777_216;
/** Calls taken by one statement. */
const takenMax = 64;
const answerAttemptsMax = 5;
const answerAgainMilliseconds = 500;
const closeMilliseconds = 5_000;

/** Whoever takes a call has it alone. Those first that are waited for the shortest. */
const take = `
  DELETE FROM call WHERE call_id IN
    (SELECT call_id FROM call ORDER BY until_ms LIMIT ${takenMax} FOR UPDATE SKIP LOCKED)
  RETURNING call_id, caller, request, until_ms - ${clockMs} AS left_ms`;
const tell = `
  WITH told AS (
    INSERT INTO call_answer (call_id, caller, answer, until_ms)
    SELECT k.call_id, k.caller, k.answer, ${clockMs} + k.milliseconds
    FROM unnest($1::bytea[], $2::text[], $3::bytea[], $4::bigint[]) AS k (call_id, caller, answer, milliseconds)
    ON CONFLICT DO NOTHING RETURNING caller)
  SELECT pg_notify('${answerChannelOf('')}' || one.caller, '') FROM (SELECT DISTINCT caller FROM told) AS one`;

/** One thing that can be asked for. `signal`: nobody waits for what it waits for any more. */
export type Method = (given: readonly unknown[], signal: AbortSignal) => Promise<unknown>;

interface Told {
  id: Buffer;
  caller: string;
  answer: Buffer;
  leftMs: number;
}

type Taken = {
  call_id: Buffer;
  caller: string;
  // Null where its caller does not wait any more.
  request: Buffer | null;
  left_ms: number;
};

export interface RpcServerOptions {
  /** The first one, which holds what nodes share. */
  database: Database;
  /** By name: what is not among them cannot be asked for. */
  methods: ReadonlyMap<string, Method>;
  log: Log;
}

/** Answers what the nodes ask, for as long as this one has the jobs. */
export class RpcServer {
  readonly #options: RpcServerOptions;
  readonly #inHand = new Map<string, { controller: AbortController; ended: Promise<void> }>();
  readonly #telling: QueryBatcher<Told, void>;
  readonly #inbox: TableQueue;

  constructor(options: RpcServerOptions) {
    this.#options = options;
    const { database, log } = options;
    this.#telling = new QueryBatcher(
      async (told) => {
        const columns = [
          told.map(({ id }) => id),
          told.map(({ caller }) => caller),
          told.map(({ answer }) => answer),
          told.map(({ leftMs }) => Math.round(leftMs)),
        ];
        await database.query(tell, columns);
        return [];
      },
      1,
      database.timeoutMilliseconds,
      { of: ({ answer }) => answer.length, max: statementBytesMax },
    );
    this.#inbox = new TableQueue({ database, log, channel: callChannel, look: () => this.#take() });
  }

  /** Takes no more; settles when what it has taken is answered, or takes too long. What waits is told not to. */
  async close(): Promise<void> {
    await this.#inbox.close();
    for (const { controller } of this.#inHand.values()) controller.abort();
    const ended = Promise.all([...this.#inHand.values()].map((call) => call.ended));
    await Promise.race([ended, elapse(closeMilliseconds, undefined, { ref: false })]);
  }

  async #take(): Promise<void> {
    for (let taken = takenMax; taken === takenMax; ) {
      const rows = await this.#options.database.query<Taken>(take);
      for (const call of rows) this.#begin(call);
      taken = rows.length;
    }
  }

  #begin(call: Taken): void {
    const key = call.call_id.toString('hex');
    if (call.request === null) {
      this.#inHand.get(key)?.controller.abort();
      return;
    }
    // Nobody waits any more.
    if (call.left_ms <= 0) return;
    const endsMs = performance.now() + call.left_ms;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), call.left_ms);
    const ended = this.#answer(call.request, key, controller)
      .then((answer) => this.#tell(call, answer, endsMs))
      .finally(() => {
        clearTimeout(timer);
        this.#inHand.delete(key);
      });
    this.#inHand.set(key, { controller, ended });
  }

  async #answer(bytes: Buffer, key: string, controller: AbortController): Promise<Buffer> {
    let request: CallRequest | undefined;
    try {
      request = unpackRequest(bytes);
      if (this.#inHand.size >= callsInHandMax) {
        throw unavailable(`${callsInHandMax} calls of nodes are in hand.`);
      }
      const method = this.#options.methods.get(request.method);
      // Of a node of another version.
      if (method === undefined) throw unavailable('The node that has the jobs does not know this method.');
      if (request.isAborted) controller.abort();
      return checked(packAnswer({ value: await method(request.given, controller.signal) }));
    } catch (error) {
      const known = error instanceof ApiError ? error : this.#failed(error, key, request?.method);
      return packAnswer({ error: known });
    }
  }

  /** Of an answer that was written already and is written again, the first one stays. */
  async #tell({ call_id: id, caller }: Taken, answer: Buffer, endsMs: number): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const leftMs = endsMs - performance.now();
      if (leftMs <= 0) return;
      try {
        await this.#telling.add({ id, caller, answer, leftMs });
        return;
      } catch (error) {
        if (attempt === answerAttemptsMax) {
          logFailure(this.#options.log, error, 'the answer to another node is lost');
          return;
        }
      }
      await sleep(answerAgainMilliseconds);
    }
  }

  /** Under the id of the call, which the log of the node that asked has too. */
  #failed(error: unknown, call: string, method: string | undefined): ApiError {
    this.#options.log.error({ err: error, request_id: call, method }, 'a call of another node failed');
    return new ApiError('internal_error', { requestId: call });
  }
}

/** @throws ApiError limit_reached for what is too large. */
function checked(answer: Buffer): Buffer {
  if (answer.length <= answerBytesMax) return answer;
  throw new ApiError('limit_reached', {
    msg: `Nodes answer each other ${answerBytesMax} bytes at most, this would be ${answer.length}: ask for less at once.`,
  });
}
