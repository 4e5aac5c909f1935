import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { StoredRecord } from '../../domain/records/record.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;

/** A record as JSON in front of its payload, whose own bytes follow (D11). */
function frontOf({ id, device, kind, schema, storedAtMs }: StoredRecord): string {
  // Ids, kinds and names have no character that JSON would escape.
  return `{"record_id":"${formatUuid(id)}","device_id":"${deviceIdOf(device)}","kind":"${kind}","schema":"${schema}","stored_at":"${new Date(storedAtMs).toISOString()}","payload":`;
}

/** One record as JSON, its payload byte for byte. */
export function recordDocument(record: StoredRecord): Buffer {
  return Buffer.concat([Buffer.from(frontOf(record)), record.payload, Buffer.from('}')]);
}

/** One record as a line, with the cursor to go on behind it. */
export function recordLine(record: StoredRecord, cursor: string): Buffer {
  return Buffer.concat([
    Buffer.from(frontOf(record)),
    onOneLine(record.payload),
    Buffer.from(`,"cursor":"${cursor}"}\n`),
  ]);
}

/** Between the tokens of JSON, and there alone, a line may end: a space is as good, and as long. */
function onOneLine(payload: Buffer): Buffer {
  if (!payload.includes(lineFeed) && !payload.includes(carriageReturn)) return payload;
  return Buffer.from(payload).map((byte) =>
    byte === lineFeed || byte === carriageReturn ? space : byte,
  ) as Buffer;
}
