import { hash } from 'node:crypto';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Table } from '../environment/stored-tables.ts';
import type { Indexed } from '../layout/device-record.ts';
import { keyOfTag, tagDigestBytes } from '../layout/keys.ts';

/** The digest that indexes disabled devices: a tag is as unlikely to have it as two tags are to collide. */
export const disabledDigest = '\0'.repeat(tagDigestBytes);
const nothing = Buffer.alloc(0);

/** Digest of a tag in index keys, one character a byte: tags may be longer than a key. */
export function digestOfTag(tag: string): string {
  return hash('sha256', tag, 'buffer').toString('latin1', 0, tagDigestBytes);
}

/** The index entries of a device. A set of digests: two tags may share an entry, which stays while either does. */
export function digestsOf({ tags, enabled }: Pick<Indexed, 'tags' | 'enabled'>): Set<string> {
  const digests = new Set(tags.map(digestOfTag));
  if (!enabled) digests.add(disabledDigest);
  return digests;
}

/** Updates the tag index, in the transaction that changes the device. */
export function changeTags(table: Table, device: DeviceKey, before: Indexed, after: Indexed): void {
  if (before.tags === after.tags && before.enabled === after.enabled) return;
  const oldDigests = digestsOf(before);
  const newDigests = digestsOf(after);
  for (const digest of oldDigests) if (!newDigests.has(digest)) table.removeSync(keyOfTag(digest, device));
  for (const digest of newDigests)
    if (!oldDigests.has(digest)) table.putSync(keyOfTag(digest, device), nothing);
}
