/**
 * Three books, each with its own bound: neither traffic of mail or claims nor a flood of refused requests displaces
 * the record of changes.
 */
export const auditBooks = ['change', 'traffic', 'refused'] as const;
export type AuditBook = (typeof auditBooks)[number];

/**
 * Who did it: an API token, a session of the console, the bootstrap token, a device with a claim token, the server itself, or someone unknown.
 */
export interface AuditActor {
  kind: 'token' | 'session' | 'bootstrap' | 'claim_token' | 'server' | 'unknown';
  id: string | null;
  name: string | null;
}

/** The request. Never a body, a payload or a secret. */
export interface AuditEvent {
  requestId: string | null;
  by: AuditActor;
  method: string;
  /** The route pattern of the path. */
  route: string;
  /** Path parameters, ids that were issued, counts. */
  about: Readonly<Record<string, string | number>>;
  address: string | null;
  /** The address claimed by the client or a proxy in front. */
  forwardedFor: string | null;
}

export interface AuditOutcome {
  status: number;
  error: string | null;
  /** Details that became known on the way. */
  about?: AuditEvent['about'];
}

/** Owners of entries that belong to no single fleet, and of those without a token. */
export const auditOwners = { server: '*', nobody: '-' } as const;

export interface AuditEntry extends AuditEvent {
  /** Ascending over all books. */
  number: number;
  book: AuditBook;
  /** The owner whose share of the book it counts against: a fleet's id, or one of `auditOwners`. */
  owner: string;
  timeMs: number;
  /** Null: in progress, or the server ended before it was known. */
  status: number | null;
  error: string | null;
  /** Refused requests before this one that have no entry. */
  omitted: number;
}

/** An entry whose outcome is not known yet. */
export interface BegunEntry {
  readonly entry: AuditEntry;
}

export interface AuditQuery {
  fleetId?: string;
  /** Id of a token or claim token, or `bootstrap`. */
  token?: string;
  book?: AuditBook;
  /** Name in its details: the id of a device or a broadcast, the name of an action. */
  about?: string;
  fromMs?: number;
  toMs?: number;
}

/**
 * Who did what: the contract of `features/audit`. A full book evicts the oldest entry of the owner with the most, so
 * that one fleet's changes cannot displace another's.
 */
export interface AuditLog {
  /**
   * Settles when the entry is durable, before the operation starts. @throws ApiError unavailable: the operation must
   * not start.
   */
  begin(book: AuditBook, event: AuditEvent): Promise<BegunEntry>;
  /**
   * Settles when the outcome is durable, or cannot be written now: then the entry may stay without an outcome, which
   * is logged.
   */
  end(begun: BegunEntry, outcome: AuditOutcome): Promise<void>;
  /** Records what can no longer be refused. */
  note(event: AuditEvent, outcome: AuditOutcome): void;
  /**
   * Records a limited number a minute, and counts the others. `owner`: the requester, not the fleet named in the
   * request, since anybody can name another fleet.
   */
  refused(owner: string, event: AuditEvent, outcome: AuditOutcome): void;
  /** Newest first. A page may be short, since one request scans a bounded number of entries. */
  page(
    query: AuditQuery,
    after: number | undefined,
    limit: number,
  ): Promise<{ items: AuditEntry[]; next: string | null }>;
  /** Oldest first, up to the newest at the time of the call. */
  all(query: AuditQuery): AsyncGenerator<AuditEntry[]>;
  /** Entries lost since the server started. */
  readonly lost: number;
}
