import { randomInt } from 'node:crypto';
import type { DeviceKey } from '../../core/identity.ts';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import type { Announcement } from '../../domain/mail/mail.ts';
import type { StreamSink } from '../../domain/shard.ts';
import type { HttpResponse } from '../uws/uws.ts';

/** D20: drawn for each stream, so that not all come back at once to a server that was started again. */
const retryMsMin = 2_500;
const retryMsMax = 7_500;
/** Announcements kept for a stream that is not open yet; beyond, hints are dropped: the mailbox is the truth. */
const earlyAnnouncementsMax = 64;
/** What may wait for a client that does not read (D21), some hundred events; then the stream is cut, and opened anew. */
const waitingMax = 65_536;

/**
 * One event. `data` is JSON made here, and JSON has no raw line break, so nothing from outside can end a
 * line. Browsers drop an event without data (D20).
 */
function formatEvent(name: string, data: object, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** The mail's place in its mailbox, which its id ends in: the same for the same mail on every connection. */
function eventId(mailId: string): number {
  return Number.parseInt(mailId.slice(-8), 16);
}

function newMail({ mailId, name, mailboxSize }: Announcement): string {
  return formatEvent('new_mail', { id: mailId, name, mailbox_size: mailboxSize }, eventId(mailId));
}

/** One event stream of a device (section 6, D20, D21), from its subscription to its end. */
export class EventStream implements StreamSink {
  readonly #device: DeviceKey;
  readonly #onClose: () => void;
  /** Rejects where the secret that the stream was opened with does not work any more. */
  readonly #check: () => Promise<void>;
  #response: HttpResponse | undefined;
  #closed = false;
  #opening = '';
  #early: Announcement[] = [];
  /** Whether the library has said that the socket takes no more. */
  #isFull = false;
  #waiting = '';

  constructor(device: DeviceKey, onClose: () => void, check: () => Promise<void>) {
    this.#device = device;
    this.#onClose = onClose;
    this.#check = check;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** What the stream opens with: the mailbox as it is once the subscription stands. */
  greet(mailboxSize: number, head: { mailId: string; name: string } | undefined): void {
    const connected = {
      fleet_id: fleetIdOf(this.#device),
      device_id: deviceIdOf(this.#device),
      mailbox_size: mailboxSize,
    };
    const retryMs = randomInt(retryMsMin, retryMsMax + 1);
    this.#opening = `retry: ${retryMs}\n\n${formatEvent('connected', connected)}`;
    if (head !== undefined) this.#opening += newMail({ ...head, mailboxSize });
    for (const announcement of this.#early) {
      if (announcement.mailId !== head?.mailId) this.#opening += newMail(announcement);
    }
    this.#early = [];
  }

  /** Takes the response over, its status and headers written. */
  open(response: HttpResponse): void {
    if (this.#closed) {
      // An end with a length: without one the client would wait for the stream to begin.
      response.end();
      return;
    }
    this.#response = response;
    response.onAborted(() => this.close());
    response.onWritable(() => {
      // Without a write here the library would time the stream out, healthy as it is.
      const text = this.#waiting === '' ? ':\n\n' : this.#waiting;
      this.#waiting = '';
      this.#hand(text);
      return true;
    });
    this.#write(this.#opening);
    this.#opening = '';
  }

  announce(announcement: Announcement): void {
    if (this.#response !== undefined) this.#write(newMail(announcement));
    else if (this.#opening === '' && this.#early.length < earlyAnnouncementsMax)
      this.#early.push(announcement);
    else if (this.#opening !== '') this.#opening += newMail(announcement);
  }

  keepAlive(timeMs: number): void {
    this.#write(formatEvent('keep_alive', { time: timeMs }));
  }

  recheck(): void {
    this.#check().catch(() => this.end());
  }

  end(): void {
    const response = this.#response;
    this.close();
    if (response !== undefined) response.cork(() => response.end());
  }

  /** Ends the subscription; called when the connection is gone, or going. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#response = undefined;
    this.#onClose();
  }

  /** While the socket is full, what is to come waits here, where it can be counted, and not in the library. */
  #write(text: string): void {
    if (this.#isFull) {
      this.#waiting += text;
      if (this.#waiting.length > waitingMax) this.#cut();
    } else this.#hand(text);
  }

  #hand(text: string): void {
    const response = this.#response;
    response?.cork(() => {
      this.#isFull = !response.write(text);
    });
  }

  #cut(): void {
    const response = this.#response;
    this.close();
    response?.close();
  }
}
