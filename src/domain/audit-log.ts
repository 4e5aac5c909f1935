/**
 * Entries are kept in three books, each with a bound of its own: no traffic of mail or claims, and no flood of refused
 * requests, pushes out what was changed.
 */
export const auditBooks = ['change', 'traffic', 'refused'] as const;
export type AuditBook = (typeof auditBooks)[number];

/** Who did it: an API token, the bootstrap token, a device with a claim token, the server itself, or nobody known. */
export interface AuditActor {
  kind: 'token' | 'bootstrap' | 'claim_token' | 'server' | 'unknown';
  id: string | null;
  name: string | null;
}

/** What was asked for. Never a body, a payload or a secret. */
export interface AuditEvent {
  requestId: string | null;
  by: AuditActor;
  method: string;
  /** The pattern that the path matched. */
  route: string;
  /** What it is about: parameters of the path, ids that were given out, counts. */
  about: Readonly<Record<string, string | number>>;
  address: string | null;
  /** As the client or a proxy before the server claims it. */
  forwardedFor: string | null;
}

export interface AuditOutcome {
  status: number;
  error: string | null;
  /** What became known on the way. */
  about?: AuditEvent['about'];
}

/** Whose entries are those that are of no one fleet, and of those whom no token names. */
export const auditOwners = { server: '*', nobody: '-' } as const;

export interface AuditEntry extends AuditEvent {
  /** Ascending over all books. */
  number: number;
  book: AuditBook;
  /** Whose share of its book it has: a fleet's id, or one of `auditOwners`. */
  owner: string;
  timeMs: number;
  /** Null: under way, or the server ended before it knew. */
  status: number | null;
  error: string | null;
  /** Refused requests before this one of which there is no entry. */
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
  fromMs?: number;
  toMs?: number;
}

/**
 * Who did what: the contract of `features/audit`. In a book that is full the oldest entry goes of whoever has most of
 * them, so that no fleet's changes push out another's.
 */
export interface AuditLog {
  /** Settles when it is on disk, before anything is done. @throws ApiError unavailable: then it must not be done. */
  begin(book: AuditBook, event: AuditEvent): Promise<BegunEntry>;
  /** Settles when it is on disk, or when it cannot be now: the entry may stay without an outcome, which is logged. */
  end(begun: BegunEntry, outcome: AuditOutcome): Promise<void>;
  /** What nobody can be refused any more. */
  note(event: AuditEvent, outcome: AuditOutcome): void;
  /**
   * So many a minute; of the others their number is kept. `owner`: who asked, and not whom it would have been about, for
   * anybody can name another fleet.
   */
  refused(owner: string, event: AuditEvent, outcome: AuditOutcome): void;
  /** Newest first. A page may be short, for one request looks at so many entries alone. */
  page(
    query: AuditQuery,
    after: number | undefined,
    limit: number,
  ): Promise<{ items: AuditEntry[]; next: string | null }>;
  /** Oldest first, up to the newest of now. */
  all(query: AuditQuery): AsyncGenerator<AuditEntry[]>;
  /** Entries that could not be written, since the server was started. */
  readonly lost: number;
}
