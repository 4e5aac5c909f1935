import { deviceIdOf } from '../../src/core/identity.ts';
import { checkSends } from '../../src/device/simulator/check/sent-check.ts';
import { doubted } from '../../src/device/simulator/devices/ledger.ts';
import type { ServerReport } from '../harness/server/server.ts';
import { eachLog, type LoggedRecord } from '../harness/storage/log.ts';
import type { Findings } from './findings.ts';

/** Records that were sent one after another, by their numbers. */
interface Sender {
  name: string;
  /** Known for good: answered, or stored without an answer, which is marked as doubted. */
  sent: number[];
  /** Records in the order of the log. */
  logged: number[];
  /** Sent again later, or perhaps done later than refused; and so out of their order. */
  late: Set<number>;
}

export interface SentRecord {
  /** Its sender's name and its number: the payload begins with it. */
  token: string;
  sender: Sender;
  sequence: number;
  deviceId: string;
  kind: 'datapoint' | 'message';
  payload: string;
  key: string | undefined;
  /** Sent in a sync, in the device's own order. */
  isQueued: boolean;
  sentAtMs: number;
  /** A refusal is a promise as well: it is not stored. */
  state: 'unanswered' | 'answered' | 'refused';
  /** True once it was found in the log. */
  isStored: boolean;
}

/** A record to be sent; its sender is the device unless it has another name. */
type Sending = Pick<SentRecord, 'deviceId' | 'kind' | 'sequence'> &
  Partial<Pick<SentRecord, 'key' | 'isQueued'>> & { name?: string; members?: object };

/** Every datapoint and message that was sent, held against the ingest logs by the simulator's check. */
export class RecordLedger {
  readonly #findings: Findings;
  readonly #senders = new Map<string, Sender>();
  readonly #open = new Map<string, SentRecord>();
  /** Position in each shard's log where the last look ended. */
  readonly #positions: number[] = [];

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  sending(sending: Sending): SentRecord {
    const { deviceId, kind, sequence, key, isQueued = false, members, name = deviceId } = sending;
    const token = `${name}-${sequence}`;
    const sender = this.#senders.get(name) ?? { name, sent: [], logged: [], late: new Set() };
    const record: SentRecord = {
      ...{ token, sender, sequence, deviceId, kind, key, isQueued, sentAtMs: Date.now() },
      payload: JSON.stringify({ token, ...members }),
      state: 'unanswered',
      isStored: false,
    };
    this.#senders.set(name, sender);
    this.#open.set(token, record);
    return record;
  }

  /** Sent with a key and never answered: to be repeated. */
  unanswered(): SentRecord[] {
    return [...this.#open.values()].filter(({ state, key }) => state === 'unanswered' && key !== undefined);
  }

  /** Reads what was added to the logs of a folder whose server has ended. */
  async check(report: ServerReport): Promise<void> {
    await eachLog(
      report,
      (records, shard) => this.look(shard, records),
      (shard) => this.positionOf(shard),
    );
    this.close();
  }

  /** The position from which on the log of a shard is to be looked at. */
  positionOf(shard: number): number {
    return this.#positions[shard] ?? 0;
  }

  /** All that a shard's log has from there on. */
  look(shard: number, records: Iterable<LoggedRecord>): void {
    const findings = this.#findings;
    let position = this.positionOf(shard);
    for (const stored of records) {
      findings.count('records read back from the log');
      findings.expect(stored.position === position, () => `the log of shard ${shard} skips a position`);
      position = stored.position + 1;
      // Receipts about mail lie between what devices sent.
      if (stored.kind !== 'receipt') this.#take(stored);
    }
    this.#positions[shard] = position;
  }

  /** Once all logs were looked at: what must be there, and what must not. */
  close(): void {
    const findings = this.#findings;
    for (const record of this.#open.values()) {
      if (record.state !== 'unanswered' || !isRepeatable(record)) continue;
      const how = record.isQueued ? 'of a sync' : 'with a key';
      findings.count(`in doubt: ${record.kind} ${how}, ${record.isStored ? 'there' : 'not there'}`);
    }
    for (const record of [...this.#open.values()]) this.#close(record);
    for (const sender of this.#senders.values()) {
      const open = [...this.#open.values()].filter((one) => one.sender === sender);
      const inDoubt = open.map(({ sequence }) => doubted(sequence));
      checkSends(sender.name, [...sender.sent, ...inDoubt], sender.logged, findings, sender.late);
    }
  }

  #take({ payload, kind, schema, device }: LoggedRecord): void {
    const text = payload.toString('utf8');
    const [, name = '', sequence] = /^\{"token":"([^"]+)-(\d+)"/.exec(text) ?? [];
    const sender = this.#senders.get(name);
    if (sender === undefined) {
      this.#findings.violation(`nobody sent this record: ${text}`);
      return;
    }
    sender.logged.push(Number(sequence));
    const sent = this.#open.get(`${name}-${sequence}`);
    if (sent === undefined) return;
    const isWhole =
      text === sent.payload && kind === sent.kind && schema === 'any' && deviceIdOf(device) === sent.deviceId;
    this.#findings.expect(isWhole, () => `the record ${sent.token} is not as it was sent: ${text}`);
    sent.isStored = true;
  }

  /** An answer is known for good; what was not answered and is not there must not come any more. */
  #close(record: SentRecord): void {
    const { token, sender, sequence, state, kind, isStored } = record;
    const findings = this.#findings;
    if (state === 'unanswered' && isRepeatable(record)) return;
    this.#open.delete(token);
    if (state === 'answered') {
      sender.sent.push(sequence);
      if (isStored) findings.count(`${kind}: answered 201, there exactly once`);
    } else if (state === 'unanswered') {
      if (isStored) sender.sent.push(doubted(sequence));
      findings.count(`in doubt: ${kind} without a key, ${isStored ? 'there' : 'not there'}`);
    }
  }
}

/** Tells whether it may be sent again until it is answered. */
function isRepeatable({ key, isQueued }: SentRecord): boolean {
  return key !== undefined || isQueued;
}
