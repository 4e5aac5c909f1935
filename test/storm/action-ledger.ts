import type { Findings } from './findings.ts';
import type { SentRecord } from './record-ledger.ts';

/** A message that actions are for. */
export interface Signal {
  record: SentRecord;
  /** Ids of the devices that it must come to as mail. */
  receivers: readonly string[];
  /** The action that never succeeds is for it as well. */
  isDoomed: boolean;
  /** Those that it came to. */
  reached: Set<string>;
  deadLetters: number;
}

/** Checks the outcome of signals against what was sent, whenever no action has anything left to do. */
export class ActionLedger {
  readonly #findings: Findings;
  readonly #open = new Map<string, Signal>();
  /** Every signal that was ever sent and looked for, and whether it was run for. */
  readonly #closed = new Map<string, boolean>();
  /** Last sequence number by receiver and sensor. */
  readonly #lastSequence = new Map<string, number>();
  #runs = 0;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  sending(record: SentRecord, receivers: readonly string[], isDoomed: boolean): void {
    this.#open.set(record.token, { record, receivers, isDoomed, reached: new Set(), deadLetters: 0 });
  }

  /** One mail of a mailbox that is gone through from its head, and emptied. */
  arrived(receiver: string, token: string): void {
    const findings = this.#findings;
    findings.count('actions: mails that arrived');
    const signal = this.#open.get(token);
    if (signal === undefined) {
      findings.violation(`${receiver} has mail for ${token}, which ${this.#pastOf(token)}`);
      return;
    }
    const { record, receivers, reached } = signal;
    findings.expect(receivers.includes(receiver), () => `${receiver} has mail for ${token}, to others`);
    findings.expect(!reached.has(receiver), () => `${receiver} has mail for ${token} twice`);
    reached.add(receiver);
    const key = `${receiver} ${record.sender.name}`;
    const last = this.#lastSequence.get(key) ?? -1;
    if (record.sender.late.has(record.sequence)) return;
    findings.expect(record.sequence > last, () => `${receiver} has mail for ${token} out of its order`);
    this.#lastSequence.set(key, record.sequence);
  }

  /** One of the runs that were given up. */
  deadLetter(token: string): void {
    const signal = this.#open.get(token);
    if (signal === undefined) {
      this.#findings.violation(`there is a dead letter for ${token}, which ${this.#pastOf(token)}`);
    } else signal.deadLetters += 1;
  }

  /**
   * Closes all signals once every arrival and dead letter is counted in; `counted`: runs that the action has counted
   * itself.
   */
  check(counted: number): void {
    for (const signal of this.#open.values()) this.#close(signal);
    this.#open.clear();
    this.#findings.expect(
      counted === this.#runs,
      () => `the state of the action counts ${counted} runs, and ${this.#runs} signals were run for`,
    );
  }

  #close({ record: { token, state }, receivers, isDoomed, reached, deadLetters }: Signal): void {
    const findings = this.#findings;
    const isRun = reached.size > 0;
    this.#closed.set(token, isRun);
    if (isRun) this.#runs += 1;
    findings.expect(
      reached.size === (isRun ? receivers.length : 0),
      () => `${token} came to ${[...reached]}, not to all of ${receivers}`,
    );
    const deadLettersExpected = isDoomed && isRun ? 1 : 0;
    findings.expect(
      deadLetters === deadLettersExpected,
      () => `${token} has ${deadLetters} dead letters, not ${deadLettersExpected}`,
    );
    findings.count('actions: dead letters, each once', deadLetters);
    if (state === 'answered') {
      findings.expect(isRun, () => `${token} was answered 201 and not run for`);
      if (isRun) findings.count('signal: answered 201, its mails there once each');
    } else if (state === 'refused') {
      findings.expect(!isRun, () => `${token} was refused and run for`);
    } else {
      findings.count(`in doubt: signal, its mails ${isRun ? 'all there' : 'not there'}`);
    }
  }

  #pastOf(token: string): string {
    const isRun = this.#closed.get(token);
    if (isRun === undefined) return 'was never sent';
    return isRun ? 'was run for before' : 'was not run for when it was looked for';
  }
}
