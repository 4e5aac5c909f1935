import type { SentRecord } from './record-ledger.ts';

const waitingMax = 60;

/** Records of a device in an order of its own (D30): all that is not known to be stored goes again, in front. */
export class SyncQueue {
  readonly #name: string;
  #waiting: SentRecord[] = [];
  #last: { seq: number; records: SentRecord[] } | undefined;
  /** Number of the first record that waits. */
  #seq = 1;

  constructor(name: string) {
    this.#name = name;
  }

  get waiting(): readonly SentRecord[] {
    return this.#waiting;
  }

  get isFull(): boolean {
    return this.#waiting.length >= waitingMax;
  }

  add(record: SentRecord): void {
    this.#waiting.push(record);
  }

  /** What waits, as members of a sync. */
  members(): string {
    return this.#membersOf(this.#seq, this.#waiting);
  }

  /** What the last sync had that was answered; undefined before there was one. */
  membersAnswered(): string | undefined {
    return this.#last && this.#membersOf(this.#last.seq, this.#last.records);
  }

  /** Takes those out that are stored. */
  stored(to: number): SentRecord[] {
    const stored = this.#waiting.splice(0, Math.max(0, to - this.#seq + 1));
    if (stored.length > 0) this.#last = { seq: this.#seq, records: stored };
    this.#seq += stored.length;
    return stored;
  }

  /** The number of the last record that is stored. */
  get storedTo(): number {
    return this.#seq - 1;
  }

  #membersOf(seq: number, records: readonly SentRecord[]): string {
    const texts = records.map(
      ({ kind, payload }) => `{"kind":"${kind}","schema":"any","payload":${payload}}`,
    );
    return `"queue":"${this.#name}","seq":${seq},"records":[${texts.join()}]`;
  }
}
