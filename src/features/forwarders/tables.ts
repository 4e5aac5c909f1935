import { parseUuid } from '../../core/uuid.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';

export const forwarderTables = ['forwarderLetters', 'forwarderReplays'] as const;

/**
 * The tables of dead letters, in the journal of the main thread.
 *
 * forwarderLetters: forwarder 16, record 16 → the record and why it was refused; one refused again, after a crash for
 * example, is there once. forwarderReplays: the same key → 16 random bytes, while it is queued to be sent again.
 */
export type ForwarderJournal = Journal<(typeof forwarderTables)[number]>;

/** Key prefix of a forwarder: the 16 bytes of its id. */
export function forwarderKey(id: string): Buffer {
  const bytes = parseUuid(id);
  if (bytes === undefined) throw new Error('a forwarder has a UUIDv7');
  return bytes;
}
