import {
  type ClientBase,
  type ClientConfig,
  Pool,
  type PoolClient,
  type QueryConfig,
  type QueryResult,
  types,
} from 'pg';
import { ApiError, unavailable } from '../../../core/errors.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { arraysOf, binaryArray } from './binary-array.ts';
import { DatabaseFailure, failureOf, isConflict } from './database-failure.ts';
import { databaseAddressOf } from './database-url.ts';
import { Listener, type ListenerOptions } from './listener.ts';

export interface DatabaseOptions {
  url: string;
  connectionsMax: number;
  /** Timeout for a connection and the answer to a statement together. */
  timeoutMilliseconds: number;
  log: Log;
}

/** A row of the library; 8-byte integers are JavaScript numbers, since all here stay far below 2^53. */
export type Row = Record<string, unknown>;

/** Members missing in the library's typings. */
type Connected = PoolClient & { connection: { stream: { destroy(): void } } };
type TimedQuery = QueryConfig & { query_timeout: number };

/** Runs statements, in order and without waiting in between, inside a transaction or outside of one. */
export interface Session {
  /** Prepares `text` once per connection, keyed by the text. @throws ApiError unavailable */
  query<T extends Row>(text: string, values?: readonly unknown[]): Promise<T[]>;
}

const int8 = 20;
const parsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : types.getTypeParser(oid, format as 'text'),
};

/** Maximum queries waiting for a connection while the database is slow or down: further ones are refused at once. */
const waitingMax = 1_000;
/**
 * Planner options of every connection. Every query uses indexes, also on a table that was empty when statistics were
 * taken last (`oneByOne` of table.ts); and statements of a millisecond are not compiled, which the cost of the
 * remaining scans would trigger.
 */
const plannerOptions = '-c enable_seqscan=off -c jit=off';
/** TCP keep-alive: a silent peer is probed after this time. */
const keepAliveMilliseconds = 10_000;
/** Minimum share of the timeout left for a statement: one that times out takes its connection along. */
const shareForStatement = 0.1;
/** Minimum time between two equal log lines. */
const logIntervalMilliseconds = 1_000;

interface Statement {
  name: string;
  arrays: ReturnType<typeof arraysOf>;
}

/** Prepared statements; their number is bounded by the texts in this folder. */
const statements = new Map<string, Statement>();

function statementOf(text: string): Statement {
  let statement = statements.get(text);
  if (statement === undefined) {
    statement = { name: `f${statements.size}`, arrays: arraysOf(text) };
    statements.set(text, statement);
  }
  return statement;
}

/**
 * One database. Every wait has a timeout on this side: a frozen primary answers nothing, not even that (measured:
 * without a timeout, callers stalled for as long as its failover took).
 */
export class Database {
  /** Also the timeout of queries waiting in batchers. */
  readonly timeoutMilliseconds: number;
  readonly #connection: ClientConfig;
  readonly #pool: Pool;
  readonly #clients = new Set<Connected>();
  readonly #log: Log;
  /** Per code, failures since the last log line, and when that was. */
  readonly #reported = new Map<string, { failures: number; atMs: number }>();

  constructor({ url, connectionsMax, timeoutMilliseconds, log }: DatabaseOptions) {
    this.#log = log;
    this.timeoutMilliseconds = timeoutMilliseconds;
    this.#connection = {
      ...databaseAddressOf(url),
      connectionTimeoutMillis: timeoutMilliseconds,
      query_timeout: timeoutMilliseconds,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMilliseconds,
    };
    this.#pool = new Pool({
      ...this.#connection,
      max: connectionsMax,
      statement_timeout: timeoutMilliseconds,
      idle_in_transaction_session_timeout: 2 * timeoutMilliseconds,
      application_name: 'fleetpost',
      options: plannerOptions,
      pipeline: true,
      types: parsers,
      onConnect: refuseStandby,
    } as ConstructorParameters<typeof Pool>[0]);
    // Errors of idle connections: the pool replaces them.
    this.#pool.on('error', (error) => this.#logFailure(failureOf(error)));
    // Errors of a connection in use fail its statements: the library removes its own listener meanwhile, and an error
    // without a listener ends the process.
    this.#pool.on('connect', (client) => client.on('error', () => {}));
    this.#pool.on('connect', (client) => this.#clients.add(client as Connected));
    this.#pool.on('remove', (client) => this.#clients.delete(client as Connected));
  }

  /** Runs one statement outside of a transaction. */
  async query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    return this.#with((client, milliseconds) => run<T>({ client, milliseconds }, text, values));
  }

  /**
   * Runs a transaction; `run` ends it by `commit`, which is sent together with the statements just before. Any error
   * rolls it back. @throws ApiError unavailable, also when the outcome of the commit is unknown
   */
  async transaction<A>(run: (transaction: Transaction) => Promise<A>): Promise<A> {
    return this.#with(async (client, milliseconds) => {
      const transaction = new Transaction({ client, milliseconds });
      try {
        const answer = await run(transaction);
        if (!transaction.isEnded) throw new Error('a transaction was not ended');
        return answer;
      } catch (error) {
        await transaction.rollback();
        throw error;
      }
    });
  }

  /** Listens to one channel on a separate connection, which the caller closes. */
  listen(listening: Pick<ListenerOptions, 'channel' | 'onPayload' | 'onListening'>): Listener {
    return new Listener({
      ...listening,
      connection: this.#connection,
      timeoutMilliseconds: this.timeoutMilliseconds,
      log: this.#log,
    });
  }

  /** Settles when no connection is left: one whose peer is silent is cut after the timeout. */
  async close(): Promise<void> {
    const patience = setTimeout(() => {
      for (const client of this.#clients) client.connection.stream.destroy();
    }, this.timeoutMilliseconds);
    await this.#pool.end();
    clearTimeout(patience);
  }

  /** `use` gets the time that each of its statements may take. */
  async #with<A>(use: (client: PoolClient, milliseconds: number) => Promise<A>): Promise<A> {
    const untilMs = performance.now() + this.timeoutMilliseconds;
    let client: PoolClient | undefined;
    let failure: DatabaseFailure | undefined;
    try {
      client = await this.#connect();
      const milliseconds = Math.round(untilMs - performance.now());
      if (milliseconds < this.timeoutMilliseconds * shareForStatement) {
        throw unavailable('The database is too slow (databaseTimeoutMilliseconds). Retry later.');
      }
      return await use(client, milliseconds);
    } catch (error) {
      if (!(error instanceof DatabaseFailure)) throw error;
      failure = error;
      if (isConflict(error)) throw error;
      this.#logFailure(error);
      const msg = 'The database of this device is not available. Retry later.';
      const { isOutcomeUnknown } = error;
      throw new ApiError('unavailable', { msg, retryAfterSeconds: 1, isOutcomeUnknown });
    } finally {
      client?.release(failure?.isLost === true);
    }
  }

  async #connect(): Promise<PoolClient> {
    if (this.#pool.waitingCount >= waitingMax)
      throw unavailable('Too many queries wait for the database. Retry later.');
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw failureOf(error);
    }
  }

  /** Logs each code once a second at most: an outage fails every query meanwhile. */
  #logFailure({ code }: DatabaseFailure): void {
    const reported = this.#reported.get(code) ?? { failures: 0, atMs: Number.NEGATIVE_INFINITY };
    this.#reported.set(code, reported);
    reported.failures += 1;
    const nowMs = performance.now();
    if (nowMs - reported.atMs < logIntervalMilliseconds) return;
    this.#log.warn({ code, failures: reported.failures }, 'database query failed');
    reported.failures = 0;
    reported.atMs = nowMs;
  }
}

/** A connection, and the timeout of a statement on it. */
interface Connection {
  client: PoolClient;
  milliseconds: number;
}

/** A transaction whose statements are pipelined, without waiting for answers. */
export class Transaction implements Session {
  readonly #connection: Connection;
  readonly #sent: Promise<unknown>[] = [];
  isEnded = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#send('BEGIN', []);
  }

  query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    return this.#send<T>(text, values);
  }

  /** Settles when all statements are done and durable. */
  async commit(): Promise<void> {
    this.isEnded = true;
    const committed = this.#end('COMMIT').catch((error: unknown) => {
      throw failureOf(error);
    });
    this.#sent.push(committed);
    const answers = await Promise.allSettled(this.#sent);
    for (const answer of answers) {
      if (answer.status === 'fulfilled') continue;
      const { code, isLost } = failureOf(answer.reason);
      throw new DatabaseFailure(code, isLost);
    }
    // COMMIT rolls a failed transaction back without an error.
    const { command } = await committed;
    if (command !== 'COMMIT') throw new DatabaseFailure('40000');
  }

  async rollback(): Promise<void> {
    if (!this.isEnded) this.#sent.push(this.#end('ROLLBACK'));
    this.isEnded = true;
    await Promise.allSettled(this.#sent);
  }

  #end(text: 'COMMIT' | 'ROLLBACK'): Promise<QueryResult> {
    const { client, milliseconds } = this.#connection;
    const query: TimedQuery = { text, query_timeout: milliseconds };
    return client.query(query);
  }

  #send<T extends Row>(text: string, values: readonly unknown[]): Promise<T[]> {
    const answer = run<T>(this.#connection, text, values);
    // Always awaited by `commit` or `rollback`.
    answer.catch(() => {});
    this.#sent.push(answer);
    return answer;
  }
}

async function run<T extends Row>(
  { client, milliseconds }: Connection,
  text: string,
  values: readonly unknown[],
): Promise<T[]> {
  try {
    const prepared = values.length === 0 ? { text } : preparedOf(text, values);
    const query: TimedQuery = { ...prepared, query_timeout: milliseconds };
    const { rows } = await client.query<T>(query);
    return rows;
  } catch (error) {
    throw failureOf(error);
  }
}

function preparedOf(text: string, values: readonly unknown[]): QueryConfig {
  const { name, arrays } = statementOf(text);
  const encoded = values.map((value, index) => {
    const type = arrays[index];
    return type !== undefined && Array.isArray(value) ? binaryArray(type, value) : value;
  });
  return { name, text, values: encoded };
}

/** Refuses a standby, whose reads may be stale: a disabled device would stay active. */
async function refuseStandby(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
  if (rows[0]?.standby === true) throw new DatabaseFailure('STANDBY');
}
