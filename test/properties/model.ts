/** What a mailbox and a sender of records must do, as plainly as it can be said (D13 to D16, D18). */
export interface ModelMail {
  id: string;
  name: string;
  payload: string;
}

const settledMax = 32;

export class DeviceModel {
  readonly mailsMax: number;
  mails: ModelMail[] = [];
  settled: { id: string; verb: string }[] = [];
  keys = new Map<string, string>();
  /** Every record that was answered 201 and not as a replay, in order. */
  records: { kind: string; schema: string; payload: string }[] = [];

  constructor(mailsMax: number) {
    this.mailsMax = mailsMax;
  }

  get head(): ModelMail | undefined {
    return this.mails[0];
  }

  get isFull(): boolean {
    return this.mails.length >= this.mailsMax;
  }

  /** The status the verb must be answered with; moves or removes the mail where that is 200. */
  settle(verb: 'ack' | 'reject' | 'requeue', id: string): number {
    const index = this.mails.findIndex((mail) => mail.id === id);
    if (index < 0) {
      const before = this.settled.find((one) => one.id === id);
      return before === undefined ? 404 : before.verb === verb ? 200 : 409;
    }
    const [mail] = this.mails.splice(index, 1);
    if (mail === undefined) throw new Error('unreachable');
    if (verb === 'requeue') this.mails.push(mail);
    else this.settled = [{ id, verb }, ...this.settled].slice(0, settledMax);
    return 200;
  }

  send(
    kind: string,
    schema: string,
    payload: string,
    key: string | undefined,
  ): 'stored' | 'replayed' | 'reused' {
    const request = `${kind}/${schema}/${payload}`;
    const before = key === undefined ? undefined : this.keys.get(key);
    if (before !== undefined) return before === request ? 'replayed' : 'reused';
    if (key !== undefined) this.keys.set(key, request);
    this.records.push({ kind, schema, payload });
    return 'stored';
  }
}
