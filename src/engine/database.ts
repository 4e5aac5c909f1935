import { Pool, type PoolClient, types } from 'pg';
import { unavailable } from '../core/errors.ts';
import type { Log } from '../core/log.ts';

export interface DatabaseOptions {
  /** `postgres://…`, as libpq reads it: `sslmode=verify-full` and `sslrootcert` for TLS with verification. */
  url: string;
  connectionsMax: number;
  /** A statement, a connection and a free connection are waited for so long each. */
  timeoutMilliseconds: number;
  log: Log;
}

/** A row as the library gives it; numbers of 8 bytes are JavaScript's, all here stay far below 2^53. */
export type Row = Record<string, unknown>;

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

/** Names of prepared statements, of which there are as many as there are texts in this room. */
const names = new Map<string, string>();

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `f${names.size}`;
    names.set(text, name);
  }
  return name;
}

/**
 * One database. Every wait has an end on this side: a primary that is frozen answers nothing, not even that
 * (measured: without one, callers stalled for as long as its failover took).
 */
export class Database {
  readonly #pool: Pool;
  readonly #log: Log;

  constructor({ url, connectionsMax, timeoutMilliseconds, log }: DatabaseOptions) {
    this.#log = log;
    this.#pool = new Pool({
      connectionString: url,
      max: connectionsMax,
      connectionTimeoutMillis: timeoutMilliseconds,
      query_timeout: timeoutMilliseconds,
      statement_timeout: timeoutMilliseconds,
      idle_in_transaction_session_timeout: 2 * timeoutMilliseconds,
      keepAlive: true,
      application_name: 'fleetpost',
      pipeline: true,
      types: parsers,
    } as ConstructorParameters<typeof Pool>[0]);
    // Of connections that nobody uses: the next who wants one gets another.
    this.#pool.on('error', (error) => log.warn({ code: codeOf(error) }, 'a database connection ended'));
  }

  /** One statement by itself. */
  async query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    return this.#with((client) => ask<T>(client, text, values));
  }

  /**
   * In one transaction; `run` ends it by `commit`, which goes out together with what was asked just before. Whatever
   * throws takes all of it back. @throws ApiError unavailable, also where nobody knows whether it was committed.
   */
  async transaction<A>(run: (transaction: Transaction) => Promise<A>): Promise<A> {
    return this.#with(async (client) => {
      const transaction = new Transaction(client);
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

  /** Settles when no connection is left. */
  close(): Promise<void> {
    return this.#pool.end();
  }

  async #with<A>(use: (client: PoolClient) => Promise<A>): Promise<A> {
    let client: PoolClient | undefined;
    let failure: unknown;
    try {
      client = await this.#pool.connect();
      return await use(client);
    } catch (error) {
      failure = error;
      throw this.#told(error);
    } finally {
      // One that failed in a way that is not the statement's own is not used again.
      client?.release(failure !== undefined && isLost(failure));
    }
  }

  /** The caller's own errors are its own; what the database or the way to it says reaches nobody but the log. */
  #told(error: unknown): unknown {
    const code = codeOf(error);
    if (code === undefined) return error;
    if (retryCodes.has(code)) return error;
    this.#log.warn({ code }, 'the database did not do what it was asked');
    return unavailable('The database of this device is not available.');
  }
}

/** Statements of one transaction, which go out one behind another without waiting for answers. */
export class Transaction implements Session {
  readonly #client: PoolClient;
  readonly #sent: Promise<unknown>[] = [];
  isEnded = false;

  constructor(client: PoolClient) {
    this.#client = client;
    this.#send('BEGIN', []);
  }

  query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    return this.#send<T>(text, values);
  }

  /** Settles when everything that was asked has been done and is durable. */
  async commit(): Promise<void> {
    this.isEnded = true;
    const committed = this.#client.query('COMMIT');
    this.#sent.push(committed);
    const answers = await Promise.allSettled(this.#sent);
    for (const answer of answers) if (answer.status === 'rejected') throw answer.reason;
    // A transaction that failed is taken back by COMMIT without an error.
    const { command } = await committed;
    if (command !== 'COMMIT') throw new Error('a transaction was taken back');
  }

  async rollback(): Promise<void> {
    if (!this.isEnded) this.#sent.push(this.#client.query('ROLLBACK'));
    this.isEnded = true;
    await Promise.allSettled(this.#sent);
  }

  #send<T extends Row>(text: string, values: readonly unknown[]): Promise<T[]> {
    const answer = ask<T>(this.#client, text, values);
    // Awaited by `commit` or `rollback`, whoever else does.
    answer.catch(() => {});
    this.#sent.push(answer);
    return answer;
  }
}

async function ask<T extends Row>(
  client: PoolClient,
  text: string,
  values: readonly unknown[],
): Promise<T[]> {
  const name = values.length === 0 ? undefined : nameOf(text);
  const { rows } = await client.query<T>({ ...(name && { name }), text, values: [...values] });
  return rows;
}

/** SQLSTATE of a conflict that an engine asks to be tried again, and of a deadlock that it has ended. */
const retryCodes: ReadonlySet<string | undefined> = new Set(['40001', '40P01']);

/** Whether the engine asks for the same transaction once more. */
export function isConflict(error: unknown): boolean {
  return retryCodes.has(codeOf(error));
}

/** What the library says of a connection that cannot be had or is no more, for which it has no code. */
const lostConnection =
  /^(Query read timeout|Connection terminated|timeout exceeded|timeout expired|Client (has|was)|Cannot use a pool)/;

/** SQLSTATE, or the name of a failed connection; undefined for what is no failure of the database. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name === 'ApiError') return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && /^[0-9A-Z_]{3,30}$/.test(code)) return code;
  return lostConnection.test(error.message) ? 'CONNECTION' : undefined;
}

function isLost(error: unknown): boolean {
  const code = codeOf(error);
  return (
    code !== undefined && (!/^[0-9A-Z]{5}$/.test(code) || code.startsWith('57') || code.startsWith('25'))
  );
}
