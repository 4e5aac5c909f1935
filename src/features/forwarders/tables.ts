import { parseUuid } from '../../core/uuid.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';

export const forwarderTables = ['forwarderLetters', 'forwarderReplays'] as const;

/**
 * What is kept of forwarders besides where they are in the logs, in the journal of the main thread.
 *
 * forwarderLetters: forwarder 16, record 16 → the record and why it was refused: one that is refused again, after a
 * crash say, is there once. forwarderReplays: the same key → 16 random bytes, while it is to be sent once more.
 */
export type ForwarderJournal = Journal<(typeof forwarderTables)[number]>;

/** The 16 bytes of a forwarder's id, which keys begin with. */
export function forwarderKey(id: string): Buffer {
  const bytes = parseUuid(id);
  if (bytes === undefined) throw new Error('a forwarder has a UUIDv7');
  return bytes;
}
