import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** `answered` if a device was answered that it is done, `doubted` if it does not know. */
export type Certainty = 'answered' | 'doubted';
export const settleVerbs = ['ack', 'reject', 'requeue'] as const;
export type SettlementVerb = (typeof settleVerbs)[number];

/** Bytes of a send: the device, and its stamp in milliseconds with the doubt in the highest bit. */
export const sendBytes = 8;
export const doubtBit = 0x8000_0000;
/** Bytes of a settlement: the device, its verb, the doubt, two empty, and the mail's id. */
export const settlementBytes = 24;

/** A stamp with the doubt. */
export const doubted = (stamp: number): number => (stamp | doubtBit) >>> 0;

const bufferBytes = 65_536 - (65_536 % (sendBytes * settlementBytes));

/** Appends entries of one length to a file, so that what devices were answered takes no memory. */
class EntryFile {
  readonly #handle: number;
  readonly #buffer = Buffer.alloc(bufferBytes);
  #at = 0;

  constructor(file: string) {
    this.#handle = openSync(file, 'wx', 0o600);
  }

  entry(bytes: number): { buffer: Buffer; at: number } {
    if (this.#at + bytes > bufferBytes) this.flush();
    const at = this.#at;
    this.#at += bytes;
    return { buffer: this.#buffer, at };
  }

  flush(): void {
    writeSync(this.#handle, this.#buffer, 0, this.#at);
    this.#at = 0;
  }

  close(): void {
    this.flush();
    closeSync(this.#handle);
  }
}

export const sendsFile = (folder: string, process: number): string => join(folder, `sends.${process}`);
export const settlementsFile = (folder: string, process: number): string =>
  join(folder, `settlements.${process}`);

/** Answers that the devices of a process got, in their order: to be held against the server's log. */
export class Ledger {
  readonly #sends: EntryFile;
  readonly #settlements: EntryFile;

  constructor(folder: string, process: number) {
    this.#sends = new EntryFile(sendsFile(folder, process));
    this.#settlements = new EntryFile(settlementsFile(folder, process));
  }

  send(device: number, stamp: number, certainty: Certainty): void {
    const { buffer, at } = this.#sends.entry(sendBytes);
    buffer.writeUInt32LE(device, at);
    buffer.writeUInt32LE(certainty === 'doubted' ? doubted(stamp) : stamp, at + 4);
  }

  settlement(device: number, mailId: string, verb: SettlementVerb, certainty: Certainty): void {
    const { buffer, at } = this.#settlements.entry(settlementBytes);
    buffer.writeUInt32LE(device, at);
    buffer.writeUInt8(settleVerbs.indexOf(verb), at + 4);
    buffer.writeUInt8(certainty === 'doubted' ? 1 : 0, at + 5);
    buffer.write(mailId.replaceAll('-', ''), at + 8, 16, 'hex');
  }

  close(): void {
    this.#sends.close();
    this.#settlements.close();
  }
}
