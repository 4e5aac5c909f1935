import { Findings } from './findings.ts';
import { Random } from './random.ts';
import { RecordLedger, type SentRecord } from './record-ledger.ts';

/** The ledger that all who take part in a storm share: chance, what they sent and were answered, and what was found. */
export class Ledger {
  readonly random: Random;
  readonly findings = new Findings();
  readonly records = new RecordLedger(this.findings);
  /**
   * True if a refused request was not done. Where a database is asked, it may have been done all the same, also later.
   */
  readonly isRefusalFinal: boolean;

  constructor(seed: number, isRefusalFinal: boolean) {
    this.random = new Random(seed);
    this.isRefusalFinal = isRefusalFinal;
  }

  /** A full queue or the end of the server may refuse any request; whatever else comes is wrong. */
  isTaken(who: string, answer: { status: number }, status: number): boolean {
    if (answer.status === status) return true;
    if (answer.status === 503) this.findings.count('refused with 503');
    else if (answer.status === 0 && !this.isRefusalFinal) this.findings.count('not answered');
    else this.findings.violation(`${who} was answered ${answer.status}: ${JSON.stringify(answer)}`);
    return false;
  }

  /** Takes the answer to a record; whether it is stored for sure. */
  take(record: SentRecord, answer: { status: number }): boolean {
    const isTaken = this.isTaken(record.deviceId, answer, 201);
    if (isTaken) {
      record.state = 'answered';
      this.findings.count(`${record.kind}: answered 201`);
    } else if (this.isRefusalFinal) record.state = 'refused';
    // It may come in behind what is sent after it.
    else record.sender.late.add(record.sequence);
    return isTaken;
  }
}
