import type { DeviceKey } from '../../src/core/identity.ts';
import type { MailboxHead } from '../../src/domain/mail/mail.ts';
import type { Page } from '../../src/domain/page.ts';
import type { StoredRecord } from '../../src/domain/records/record.ts';
import type { Shard } from '../../src/domain/shard.ts';

/** All that a shard answers about its devices, mail and log, to be compared with what another engine answers. */
export async function answersOf(shard: Shard, asked: Asked): Promise<unknown> {
  const { devices, mails, fleetIds } = asked;
  const ofDevices: unknown[] = [];
  for (const [index, device] of devices.entries()) {
    const receipts: unknown[] = [];
    // Those of its mails, and those that it has of another's: none.
    for (const owner of [device, devices.at(index - 1)])
      for (const mail of mails)
        if (mail.device === owner) receipts.push(await shard.mail.receipt(device, mail.mailId));
    // Not every engine brings the size along.
    const { mailboxSize: _, ...credentials } = (await shard.devices.credentials(device)) ?? {};
    ofDevices.push({
      device: await shard.devices.get(device),
      credentials,
      size: await shard.mail.size(device),
      head: idOfHead(await shard.mail.head(device)),
      queue: await queueOf(shard, device),
      mails: await allOf((after) => shard.mail.list(device, after, 3)),
      receipts,
    });
  }
  const ofFleets: unknown[] = [];
  for (const fleetId of fleetIds) {
    ofFleets.push({
      counts: await shard.devices.fleetCounts(fleetId),
      tagged: await shard.devices.idsWithTag(fleetId, 'row 1', '', 100),
      named: (await shard.devices.find({ by: 'name', fleetId, namePrefix: 'Sen', after: '', scanMax: 100 }))
        .items,
      seen: (await shard.devices.find({ by: 'seen', fleetId, seenAfterMs: 1, after: '', scanMax: 100 }))
        .items,
      disabled: (await shard.devices.find({ by: 'disabled', fleetId, after: '', scanMax: 100 })).items,
      letters: await allOf((after) => shard.deadLetters.list(fleetId, {}, after, 3)),
    });
  }
  const records = await recordsOf(shard);
  const times = [
    ...new Set(records.filter(({ isRelocated }) => !isRelocated).map(({ storedAtMs }) => storedAtMs)),
  ];
  const ofLog: unknown[] = [await shard.log.end(), await shard.log.reorderedUntil()];
  for (const time of times) ofLog.push([time, await shard.log.timeAt(await firstAt(records, time))]);
  return plain({ ofDevices, ofFleets, records, ofLog });
}

/** Where the queue `q` of a device stands (D30). */
export async function queueOf(shard: Shard, device: DeviceKey): Promise<unknown> {
  const mail = { mailsMax: 0, bytesMax: 0 };
  const asked = { device, records: [], queue: { name: 'q', seq: 1 }, settlements: [], mail };
  return (await shard.sync(asked)).queue;
}

export interface Asked {
  devices: readonly DeviceKey[];
  mails: readonly { device: DeviceKey; mailId: Uint8Array }[];
  fleetIds: readonly string[];
}

async function firstAt(records: readonly StoredRecord[], timeMs: number): Promise<number> {
  return records.find(({ storedAtMs, isRelocated }) => !isRelocated && storedAtMs === timeMs)?.position ?? 0;
}

/** Its whole log. */
export async function recordsOf(shard: Pick<Shard, 'log'>): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  for (let at = 0, isEnd = false; !isEnd; ) {
    const page = await shard.log.read(at);
    records.push(...page.records);
    isEnd = page.next === at;
    at = page.next;
  }
  return records;
}

/** Reads all pages. */
export async function allOf<T>(read: (after: string) => Page<T> | Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const page: Page<T> = await read(after);
    items.push(...page.items);
    after = page.next;
  }
  return items;
}

/** Its times are the shard's own. */
function idOfHead({ mail, size }: MailboxHead): unknown {
  return { size, id: mail?.id, payload: mail?.payload, fetchCount: mail?.fetchCount };
}

/** Bytes as hex, whatever holds them; what is undefined is not there. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([name, inner]) => [name, plain(inner)]));
}
