import { datapointSchema } from '../servers/payload-schema.ts';
import type { Credentials } from '../servers/subject.ts';
import { keyPlace, requestText } from './requests.ts';

/** Stands where the number of the record is put, which has as many digits: a request keeps its length. */
const numberPlace = 1_000_000_000_000;

/** A wake as a template: one datapoint, the acknowledgement of the mail that the last one brought, and the next mail. */
export function wakeText(device: Credentials, payload: string): string {
  const record = `{"kind":"datapoint","schema":"${datapointSchema}","payload":${payload}}`;
  const settle = `{"id":"${keyPlace}","verb":"ack"}`;
  const body = `{"queue":"bench","seq":${numberPlace},"records":[${record}],"settle":[${settle}]}`;
  return requestText(device, { method: 'POST', path: '/v1/sync', body });
}

/** A device that wakes again and again: what it sends depends on what it was answered. */
export class Sleeper {
  readonly #template: string;
  /** Beyond all that an earlier run has sent, or the server would know it. */
  #number = Date.now();
  #mailId = keyPlace;

  constructor(template: string) {
    this.#template = template;
  }

  /** The first wake has no mail to acknowledge: it names one that there is not. */
  next(): string {
    this.#number += 1;
    return this.#template.replace(String(numberPlace), String(this.#number)).replace(keyPlace, this.#mailId);
  }

  hear(answer: string): void {
    const mail = answer.slice(answer.indexOf('"mail":'));
    this.#mailId = /"id":"([0-9a-f-]{36})"/.exec(mail)?.[1] ?? keyPlace;
  }
}
