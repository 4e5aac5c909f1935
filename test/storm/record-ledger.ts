import { deviceIdOf } from '../../src/core/identity.ts';
import { eachLog, type LoggedRecord } from '../harness/log.ts';
import type { ServerReport } from '../harness/server.ts';
import type { Findings } from './findings.ts';

export interface SentRecord {
  token: string;
  /** Records of one sender were sent one after another. */
  sender: string;
  sequence: number;
  deviceId: string;
  kind: 'datapoint' | 'message';
  payload: string;
  key: string | undefined;
  sentAtMs: number;
  /** A refusal is a promise as well: it is not stored. */
  state: 'unanswered' | 'answered' | 'refused';
  /** Sent again later with its key, or perhaps done later than it was refused; and so out of its order. */
  isRepeated: boolean;
  /** True once it was found in the log. */
  isStored: boolean;
}

/** Every datapoint and message that was sent, held against the ingest logs of the data folder. */
export class RecordLedger {
  readonly #findings: Findings;
  readonly #open = new Map<string, SentRecord>();
  readonly #stored = new Set<string>();
  readonly #notStored = new Set<string>();
  readonly #lastOfSender = new Map<string, number>();
  /** Position in each shard's log where the last look ended. */
  readonly #positions: number[] = [];

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  sending(record: SentRecord): void {
    this.#open.set(record.token, record);
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

  /** From where on the log of a shard is to be looked at. */
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
      if (stored.kind === 'receipt') continue;
      const payload = stored.payload.toString('utf8');
      const sent = this.#expectSent(payload);
      if (sent === undefined) continue;
      const isWhole =
        payload === sent.payload &&
        stored.kind === sent.kind &&
        stored.schema === 'any' &&
        deviceIdOf(stored.device) === sent.deviceId;
      findings.expect(isWhole, () => `the record ${sent.token} is not as it was sent: ${payload}`);
      this.#expectOrder(sent);
      sent.isStored = true;
    }
    this.#positions[shard] = position;
  }

  /** Once all logs were looked at: what must be there, and what must not. */
  close(): void {
    const findings = this.#findings;
    for (const record of this.unanswered()) {
      findings.count(`in doubt: ${record.kind} with a key, ${record.isStored ? 'there' : 'not there'}`);
    }
    for (const record of [...this.#open.values()]) this.#close(record);
  }

  #expectSent(payload: string): SentRecord | undefined {
    const token = /^\{"token":"([^"]+)"/.exec(payload)?.[1] ?? '';
    if (this.#stored.has(token)) this.#findings.violation(`the record ${token} is stored twice`);
    else if (this.#notStored.has(token)) this.#findings.violation(`the record ${token} came from nowhere`);
    else if (!this.#open.has(token)) this.#findings.violation(`nobody sent this record: ${payload}`);
    this.#stored.add(token);
    return this.#open.get(token);
  }

  #expectOrder({ sender, sequence, isRepeated, token }: SentRecord): void {
    if (isRepeated) return;
    const last = this.#lastOfSender.get(sender) ?? -1;
    this.#findings.expect(sequence > last, () => `the record ${token} is stored out of order`);
    this.#lastOfSender.set(sender, sequence);
  }

  #close({ token, state, kind, key, isStored: isFound }: SentRecord): void {
    const findings = this.#findings;
    if (state === 'unanswered' && key !== undefined) return;
    this.#open.delete(token);
    if (!isFound) this.#notStored.add(token);
    if (state === 'answered') {
      findings.expect(isFound, () => `the ${kind} ${token} was answered 201 and is lost`);
      if (isFound) findings.count(`${kind}: answered 201, there exactly once`);
    } else if (state === 'refused') {
      findings.expect(!isFound, () => `the ${kind} ${token} was refused and is there`);
    } else {
      findings.count(`in doubt: ${kind} without a key, ${isFound ? 'there' : 'not there'}`);
    }
  }
}
