import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import { dropsPerLetter } from '../../../domain/mail/end-rules.ts';
import type { Effects } from '../../../domain/write.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Session } from '../connection/database.ts';
import { RowSet } from '../schema/row-set.ts';
import { type DeadLetterRow, deadLetter } from '../schema/tables.ts';

/**
 * Removes letters, and adjusts the counts for these and for new ones. Rows are locked in order and before the counts,
 * which are locked in order of fleet: whoever holds a count waits for no row.
 */
const removeAndCount = `
  WITH removed_letters AS (
    DELETE FROM dead_letter d WHERE d.ctid = ANY (ARRAY(
      SELECT o.ctid FROM unnest($1::text[], $2::bytea[], $3::text[]) AS k (fleet_id, mail_id, device)
      CROSS JOIN LATERAL (
        SELECT t.ctid FROM dead_letter t
        WHERE t.fleet_id = k.fleet_id AND t.mail_id = k.mail_id AND t.device = k.device FOR UPDATE
      ) AS o
    ))
    RETURNING d.fleet_id
  ), changed AS (
    SELECT fleet_id, -1 AS change FROM removed_letters
    UNION ALL SELECT p.fleet_id, p.change FROM unnest($4::text[], $5::integer[]) AS p (fleet_id, change)
  )
  INSERT INTO letter_count (fleet_id, letters)
  SELECT fleet_id, sum(change) FROM changed GROUP BY fleet_id ORDER BY fleet_id
  ON CONFLICT (fleet_id) DO UPDATE SET letters = letter_count.letters + excluded.letters`;

/**
 * Removes the oldest letters of fleets over their limit (`droppedLetters`), except those being removed elsewhere. Counts are locked. Uses
 * arrays of keys, which are looked up; a join with a computed limit read all letters of all fleets.
 */
const dropOldest = `
  WITH over AS (
    SELECT c.fleet_id, least(c.letters - $3, p.drops_max) AS excess
    FROM unnest($1::text[], $2::integer[]) AS p (fleet_id, drops_max)
    JOIN letter_count c ON c.fleet_id = p.fleet_id WHERE c.letters > $3
  ), removed_letters AS (
    DELETE FROM dead_letter d
    WHERE d.fleet_id = ANY (ARRAY(SELECT fleet_id FROM over)) AND d.mail_id = ANY (ARRAY(
      SELECT l.mail_id FROM over CROSS JOIN LATERAL (
        SELECT t.mail_id FROM dead_letter t WHERE t.fleet_id = over.fleet_id
        ORDER BY t.mail_id, t.device LIMIT over.excess FOR UPDATE SKIP LOCKED
      ) AS l
    ))
    RETURNING d.fleet_id
  )
  UPDATE letter_count SET letters = letters - g.dropped
  FROM (SELECT fleet_id, count(*) AS dropped FROM removed_letters GROUP BY fleet_id) AS g
  WHERE letter_count.fleet_id = g.fleet_id
  RETURNING g.dropped`;

export type LetterKey = Pick<DeadLetterRow, 'fleetId' | 'mailId' | 'device'>;

/** Key of the letter of a mail. */
export function letterKey(device: DeviceKey, mailId: Uint8Array): LetterKey {
  return { fleetId: fleetIdOf(device), mailId: viewOf(mailId), device };
}

/** Dead letters (D16) changed by one transaction, and their count per fleet. */
export class DatabaseDeadLetters {
  readonly #rows = new RowSet(deadLetter);
  readonly #effects: Pick<Effects, 'droppedLetters'>;
  readonly #put = new Set<DeadLetterRow>();
  readonly #removed: LetterKey[] = [];
  #perFleetMax = Number.POSITIVE_INFINITY;

  constructor(effects: Pick<Effects, 'droppedLetters'>) {
    this.#effects = effects;
  }

  preload(key: LetterKey): void {
    this.#rows.preload(key);
  }

  load(session: Session): Promise<void> {
    return this.#rows.load(session);
  }

  get(key: LetterKey): DeadLetterRow | undefined {
    return this.#rows.get(key);
  }

  /** If the fleet is at its limit, the oldest letters are dropped. */
  put(letter: DeadLetterRow, perFleetMax: number): void {
    this.#perFleetMax = perFleetMax;
    this.#rows.put(letter);
    this.#put.add(letter);
  }

  /** A letter removed elsewhere meanwhile is not counted twice. */
  remove(key: LetterKey): void {
    for (const letter of this.#put) if (isSame(letter, key)) this.#put.delete(letter);
    this.#rows.noteAbsent(key);
    this.#removed.push(key);
  }

  store(session: Session): void {
    if (this.#put.size === 0 && this.#removed.length === 0) return;
    this.#rows.store(session);
    const puts = new Map<string, number>();
    for (const { fleetId } of this.#put) puts.set(fleetId, (puts.get(fleetId) ?? 0) + 1);
    const fleets = [...puts.keys()];
    const counts = [...puts.values()];
    const removed = this.#removed
      .map((key) => ({ ...key, text: deadLetter.textOf(key) }))
      .sort((a, b) => (a.text < b.text ? -1 : 1));
    void session.query(removeAndCount, [
      removed.map(({ fleetId }) => fleetId),
      removed.map(({ mailId }) => mailId),
      removed.map(({ device }) => device),
      fleets,
      counts,
    ]);
    if (fleets.length === 0) return;
    const drops = counts.map((count) => count * dropsPerLetter);
    // Resolves before the commit, and is rolled back with it.
    session.query<{ dropped: number }>(dropOldest, [fleets, drops, this.#perFleetMax]).then(
      (rows) => {
        for (const { dropped } of rows) this.#effects.droppedLetters += dropped;
      },
      () => {},
    );
  }
}

function isSame(letter: LetterKey, { mailId, device }: LetterKey): boolean {
  return letter.device === device && letter.mailId.equals(mailId);
}
