import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { StoredRecord } from '../../domain/records/record.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;

/** The JSON of a record up to its payload, whose original bytes follow (D11). */
function frontOf({ id, device, kind, schema, storedAtMs, recordedAtMs, mailId }: StoredRecord): string {
  const recordedAt =
    recordedAtMs === undefined ? '' : `,"recorded_at":"${new Date(recordedAtMs).toISOString()}"`;
  const mail = mailId === undefined ? '' : `,"mail_id":"${formatUuid(mailId)}"`;
  // Ids, kinds and names hold no character that JSON would escape.
  return `{"record_id":"${formatUuid(id)}","device_id":"${deviceIdOf(device)}","kind":"${kind}","schema":"${schema}","stored_at":"${new Date(storedAtMs).toISOString()}"${recordedAt}${mail},"payload":`;
}

/** A record as JSON, its payload byte for byte. */
export function recordJson(record: StoredRecord): Buffer {
  return Buffer.concat([Buffer.from(frontOf(record)), record.payload, Buffer.from('}')]);
}

/** A record as JSON on one line. */
export function recordOnOneLine(record: StoredRecord): string {
  return `${frontOf(record)}${onOneLine(record.payload).toString('utf8')}}`;
}

/** A record as a line of NDJSON, with the cursor to continue after it. */
export function recordLine(record: StoredRecord, cursor: string): Buffer {
  return Buffer.concat([
    Buffer.from(frontOf(record)),
    onOneLine(record.payload),
    Buffer.from(`,"cursor":"${cursor}"}\n`),
  ]);
}

/** Replaces line ends, which JSON allows between tokens only, with spaces of the same length. */
function onOneLine(payload: Buffer): Buffer {
  if (!payload.includes(lineFeed) && !payload.includes(carriageReturn)) return payload;
  return Buffer.from(payload).map((byte) =>
    byte === lineFeed || byte === carriageReturn ? space : byte,
  ) as Buffer;
}
