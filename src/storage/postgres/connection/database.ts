import {
  type ClientBase,
  type ClientConfig,
  Pool,
  type PoolClient,
  type QueryConfig,
  type QueryResult,
  types,
} from 'pg';
import { unavailable } from '../../../core/errors.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { arraysOf, binaryArray } from './binary-array.ts';
import { DatabaseFailure, failureOf, isConflict } from './database-failure.ts';
import { databaseAddressOf } from './database-url.ts';
import { Listener, type ListenerOptions } from './listener.ts';

export interface DatabaseOptions {
  /** `postgres://…`, as database-url.ts reads it. */
  url: string;
  connectionsMax: number;
  /** A connection and the answer to a statement are waited for so long together. */
  timeoutMilliseconds: number;
  log: Log;
}

/** A row as the library gives it; numbers of 8 bytes are JavaScript's, all here stay far below 2^53. */
export type Row = Record<string, unknown>;

/** A connection, and a query, with what the library's typings leave out of them. */
type Connected = PoolClient & { connection: { stream: { destroy(): void } } };
type TimedQuery = QueryConfig & { query_timeout: number };

/** What can be asked inside a transaction, or outside of one: statements in order, without waiting in between. */
export interface Session {
  /** `text` is prepared once on each connection, under its own text. @throws ApiError unavailable */
  query<T extends Row>(text: string, values?: readonly unknown[]): Promise<T[]>;
}

const int8 = 20;
const parsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : types.getTypeParser(oid, format as 'text'),
};

/** What waits for a free connection, while the database is slow or gone: more are refused at once. */
const waitingMax = 1_000;
/**
 * Of every connection. What nodes ask is looked up by indexes, also in a table that was empty when it was counted last
 * (`oneByOne` of table.ts); and statements of a millisecond are not compiled, which the price of other scans would ask
 * for.
 */
const plannerOptions = '-c enable_seqscan=off -c jit=off';
/** A peer that is silent for so long is asked whether it is there. */
const keepAliveMilliseconds = 10_000;
/** The share of the timeout that a statement must have left: one that is given up takes its connection along. */
const shareForStatement = 0.1;
/** Between two lines of the log that say the same. */
const tellMilliseconds = 1_000;

interface Statement {
  name: string;
  arrays: ReturnType<typeof arraysOf>;
}

/** Prepared statements, of which there are as many as there are texts in this room. */
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
 * One database. Every wait has an end on this side: a primary that is frozen answers nothing, not even that
 * (measured: without one, callers stalled for as long as its failover took).
 */
export class Database {
  /** For what waits to be asked, too. */
  readonly timeoutMilliseconds: number;
  /** Of every connection. */
  readonly #connection: ClientConfig;
  readonly #pool: Pool;
  readonly #clients = new Set<Connected>();
  readonly #log: Log;
  /** Of each code, failures since the log was told, and when that was. */
  readonly #told = new Map<string, { failures: number; atMs: number }>();

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
    // Of connections that nobody uses: the next who wants one gets another.
    this.#pool.on('error', (error) => this.#tell(failureOf(error)));
    // Of one that is in use, its statements say so: the library's own listener is off for so long, and an error that
    // nobody listens to ends the process.
    this.#pool.on('connect', (client) => client.on('error', () => {}));
    this.#pool.on('connect', (client) => this.#clients.add(client as Connected));
    this.#pool.on('remove', (client) => this.#clients.delete(client as Connected));
  }

  /** One statement by itself. */
  async query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    return this.#with((client, milliseconds) => ask<T>({ client, milliseconds }, text, values));
  }

  /**
   * In one transaction; `run` ends it by `commit`, which goes out together with what was asked just before. Whatever
   * throws takes all of it back. @throws ApiError unavailable, also where nobody knows whether it was committed.
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

  /** A connection of its own, which listens to one channel and is closed by whoever asked for it. */
  listen(listening: Pick<ListenerOptions, 'channel' | 'onPayload' | 'onListening'>): Listener {
    return new Listener({
      ...listening,
      connection: this.#connection,
      timeoutMilliseconds: this.timeoutMilliseconds,
      log: this.#log,
    });
  }

  /** Settles when no connection is left: one whose other end is silent says no goodbye, and is cut. */
  async close(): Promise<void> {
    const patience = setTimeout(() => {
      for (const client of this.#clients) client.connection.stream.destroy();
    }, this.timeoutMilliseconds);
    await this.#pool.end();
    clearTimeout(patience);
  }

  /** `use` is told how long the answer to each of its statements may take. */
  async #with<A>(use: (client: PoolClient, milliseconds: number) => Promise<A>): Promise<A> {
    const untilMs = performance.now() + this.timeoutMilliseconds;
    let client: PoolClient | undefined;
    let failure: DatabaseFailure | undefined;
    try {
      client = await this.#connect();
      const milliseconds = Math.round(untilMs - performance.now());
      if (milliseconds < this.timeoutMilliseconds * shareForStatement) {
        throw unavailable('The database is too slow (databaseTimeoutMilliseconds).');
      }
      return await use(client, milliseconds);
    } catch (error) {
      if (!(error instanceof DatabaseFailure)) throw error;
      failure = error;
      if (isConflict(error)) throw error;
      this.#tell(error);
      throw unavailable('The database of this device is not available.');
    } finally {
      client?.release(failure?.isLost === true);
    }
  }

  async #connect(): Promise<PoolClient> {
    if (this.#pool.waitingCount >= waitingMax) throw unavailable('Too many wait for the database.');
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw failureOf(error);
    }
  }

  /** Of each code once a second at most: an outage fails all that is asked meanwhile. */
  #tell({ code }: DatabaseFailure): void {
    const told = this.#told.get(code) ?? { failures: 0, atMs: Number.NEGATIVE_INFINITY };
    this.#told.set(code, told);
    told.failures += 1;
    const nowMs = performance.now();
    if (nowMs - told.atMs < tellMilliseconds) return;
    this.#log.warn({ code, failures: told.failures }, 'the database did not do what it was asked');
    told.failures = 0;
    told.atMs = nowMs;
  }
}

/** A connection, and how long the answer to a statement may take on it. */
interface Connection {
  client: PoolClient;
  milliseconds: number;
}

/** Statements of one transaction, which go out one behind another without waiting for answers. */
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

  /** Settles when everything that was asked has been done and is durable. */
  async commit(): Promise<void> {
    this.isEnded = true;
    const committed = this.#end('COMMIT').catch((error: unknown) => {
      throw failureOf(error);
    });
    this.#sent.push(committed);
    const answers = await Promise.allSettled(this.#sent);
    for (const answer of answers) if (answer.status === 'rejected') throw answer.reason;
    // A transaction that failed is taken back by COMMIT without an error.
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
    const answer = ask<T>(this.#connection, text, values);
    // Awaited by `commit` or `rollback`, whoever else does.
    answer.catch(() => {});
    this.#sent.push(answer);
    return answer;
  }
}

async function ask<T extends Row>(
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

/** A standby answers reads from a past that may be long: a device that was disabled would go on. */
async function refuseStandby(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
  if (rows[0]?.standby === true) throw new DatabaseFailure('STANDBY');
}
