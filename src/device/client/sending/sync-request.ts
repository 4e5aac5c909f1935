import { type Answer, payloadBytesMax } from '../answer.ts';
import type { QueueEntry, QueueOrder } from '../queue/queue.ts';

const recordsMax = 500;
/** What is around the records of a sync, its settlement included. */
const frameBytes = 512;

/** A mail that was handled: how it is to be settled. */
export interface Settlement {
  id: string;
  verb: string;
}

/** What one request says of a wake (D29). */
export interface SyncRequest {
  order: QueueOrder | undefined;
  entries: readonly QueueEntry[];
  /** When each of them was recorded, if it is late. */
  timesMs: readonly (number | null)[];
  settlement: Settlement | undefined;
  mailsMax: 0 | 1;
}

/** What becomes of an item. */
export interface SyncItem {
  status: number;
  error?: string;
  msg?: string;
}

/** The server's answer to a sync, as far as a device needs it. */
export interface SyncAnswer {
  records: SyncItem[];
  settled: SyncItem[];
  storedTo: number;
  mail: { id: string; name: string; body: Buffer } | undefined;
}

/** Decides whether one more entry goes into a sync, for `DeviceQueue.run`. */
export function syncSpace(): (entry: QueueEntry) => boolean {
  let [count, bytes] = [0, frameBytes];
  return (entry) => {
    count += 1;
    bytes += Buffer.byteLength(recordText(entry, 0)) + 1;
    return count <= recordsMax && bytes <= payloadBytesMax;
  };
}

function recordText({ kind, name, body }: QueueEntry, timeMs: number | null): string {
  const schema = JSON.stringify(decodeURIComponent(name));
  const payload = body === '' ? '' : `,"payload":${body}`;
  const time = timeMs === null ? '' : `,"recorded_at":"${new Date(timeMs).toISOString()}"`;
  return `{"kind":"${kind === 'msg' ? 'message' : kind}","schema":${schema}${payload}${time}}`;
}

export function composeSync({ order, entries, timesMs, settlement, mailsMax }: SyncRequest): Buffer {
  const parts = [`"mail":{"max":${mailsMax}}`];
  const [first] = entries;
  if (order !== undefined && first !== undefined) {
    const records = entries.map((entry, index) => recordText(entry, timesMs[index] ?? null));
    parts.push(`"queue":"${order.name}","seq":${first.number - order.base},"records":[${records.join()}]`);
  }
  if (settlement !== undefined) parts.push(`"settle":[${JSON.stringify(settlement)}]`);
  return Buffer.from(`{${parts.join()}}`);
}

/** Reads the answer 200 to a sync. */
export function parseSyncAnswer({ body }: Answer): SyncAnswer {
  const text = body.toString();
  const found = JSON.parse(text) as {
    records?: SyncItem[];
    settled?: SyncItem[];
    stored_to?: number;
    mail?: { id: string; name: string; payload: unknown }[];
  };
  const [mail] = found.mail ?? [];
  return {
    records: found.records ?? [],
    settled: found.settled ?? [],
    storedTo: found.stored_to ?? 0,
    mail: mail && { id: mail.id, name: mail.name, body: Buffer.from(payloadText(text, mail.payload)) },
  };
}

/** The payload of the only mail byte for byte, which `JSON.parse` would not keep: integers beyond 2^53, say. */
function payloadText(text: string, payload: unknown): string {
  const [front = ''] = /"mail":\[\{"id":"[^"]*","name":"[^"]*","payload":/.exec(text) ?? [];
  const [start, end] = [text.indexOf(front) + front.length, text.lastIndexOf(',"requeue_count":')];
  return front === '' || end < start ? JSON.stringify(payload) : text.slice(start, end);
}
