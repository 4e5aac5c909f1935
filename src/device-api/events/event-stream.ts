import { randomInt } from 'node:crypto';
import type { DeviceKey } from '../../core/identity.ts';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import type { Announcement } from '../../domain/mail/mail.ts';
import type { StreamSink } from '../../domain/shard-streams.ts';
import type { HttpResponse } from '../uws/uws.ts';

/** Reconnection delay, random for each stream, so that clients of a restarted server do not return all at once (D20). */
const retryMsMin = 2_500;
const retryMsMax = 7_500;
/** Announcements buffered for a stream that is not open yet. More are dropped: they are hints, the mailbox is the truth. */
const earlyAnnouncementsMax = 64;
/** Text buffered for a client that does not read (D21), some hundred events. Beyond, the stream is cut, to be reopened. */
const bufferedMax = 65_536;

/**
 * Formats one event. `data` is JSON, which has no raw line break, so that no input can end a line. Browsers drop an
 * event without data (D20).
 */
function formatEvent(name: string, data: object, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** The mail's sequence in its mailbox, which its id ends in: the same for the same mail on every connection. */
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
  /** Rejects if the secret that the stream was opened with is no longer valid. */
  readonly #check: () => Promise<void>;
  #response: HttpResponse | undefined;
  #closed = false;
  #opening = '';
  #early: Announcement[] = [];
  /** True if the socket has signalled backpressure. */
  #isFull = false;
  #buffered = '';

  constructor(device: DeviceKey, onClose: () => void, check: () => Promise<void>) {
    this.#device = device;
    this.#onClose = onClose;
    this.#check = check;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Sets the opening of the stream: the state of the mailbox, read once the subscription is active. */
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

  /** Takes over the response, whose status and headers are written. */
  open(response: HttpResponse): void {
    if (this.#closed) {
      // Ends with a length: without one the client would wait for the stream to begin.
      response.end();
      return;
    }
    this.#response = response;
    response.onAborted(() => this.close());
    response.onWritable(() => {
      // Without a write here the library would time out a healthy stream.
      const text = this.#buffered === '' ? ':\n\n' : this.#buffered;
      this.#buffered = '';
      this.#send(text);
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

  /** Ends the subscription; called when the connection is closed or closing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#response = undefined;
    this.#onClose();
  }

  /** Buffers under backpressure here, where the size can be bounded, and not in the library. */
  #write(text: string): void {
    if (this.#isFull) {
      this.#buffered += text;
      if (this.#buffered.length > bufferedMax) this.#cut();
    } else this.#send(text);
  }

  #send(text: string): void {
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
