import { hash } from 'node:crypto';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Table } from '../environment/stored-tables.ts';
import type { Indexed } from '../layout/device-record.ts';
import { keyOfTag, tagDigestBytes } from '../layout/keys.ts';

/** Under which the index has the devices that are disabled: no tag is as likely to have it as two to share one. */
export const disabledDigest = '\0'.repeat(tagDigestBytes);
const nothing = Buffer.alloc(0);

/** What stands for a tag in the keys of the index, one character a byte: a tag may be longer than a key. */
export function digestOfTag(tag: string): string {
  return hash('sha256', tag, 'buffer').toString('latin1', 0, tagDigestBytes);
}

/** What the index has a device under. By digests: two tags of one device can share an entry, which stays with either. */
export function digestsOf({ tags, enabled }: Pick<Indexed, 'tags' | 'enabled'>): Set<string> {
  const digests = new Set(tags.map(digestOfTag));
  if (!enabled) digests.add(disabledDigest);
  return digests;
}

/** In the transaction that changes the device. */
export function changeTags(table: Table, device: DeviceKey, before: Indexed, after: Indexed): void {
  if (before.tags === after.tags && before.enabled === after.enabled) return;
  const gone = digestsOf(before);
  const come = digestsOf(after);
  for (const digest of gone) if (!come.has(digest)) table.removeSync(keyOfTag(digest, device));
  for (const digest of come) if (!gone.has(digest)) table.putSync(keyOfTag(digest, device), nothing);
}
