import { readFileSync, statSync } from 'node:fs';
import { addToGroup } from '../../../core/groups.ts';
import {
  doubtBit,
  type SettlementVerb,
  sendBytes,
  sendsFile,
  settlementBytes,
  settlementsFile,
  settleVerbs,
} from '../devices/ledger.ts';

/** Answers of a run that one check can hold: beyond, it says that it has not checked. */
export const entriesMax = 200_000_000;

/** A send that a device was answered, or does not know about. */
export interface SentStamp {
  stamp: number;
  isDoubtful: boolean;
}

/** A settlement likewise. */
export interface SettledMail {
  mailId: string;
  verb: SettlementVerb;
  isDoubtful: boolean;
}

/** Numbers by device, in the order in which they were added: two arrays, however many there are. */
export class StampsByDevice {
  #devices = new Uint32Array(65_536);
  #stamps = new Uint32Array(65_536);
  #starts: Uint32Array | undefined;
  #order: Uint32Array | undefined;
  count = 0;

  add(device: number, stamp: number): void {
    if (this.count === this.#devices.length) {
      this.#devices = grown(this.#devices);
      this.#stamps = grown(this.#stamps);
    }
    this.#devices[this.count] = device;
    this.#stamps[this.count] = stamp;
    this.count += 1;
  }

  /** Sorts by device, stably: from now on `of` answers, and nothing may be added. */
  sort(devices: number): void {
    const starts = new Uint32Array(devices + 1);
    for (let at = 0; at < this.count; at += 1) {
      const next = (this.#devices[at] ?? 0) + 1;
      starts[next] = (starts[next] ?? 0) + 1;
    }
    for (let device = 0; device < devices; device += 1) {
      starts[device + 1] = (starts[device + 1] ?? 0) + (starts[device] ?? 0);
    }
    const filled = starts.slice();
    const order = new Uint32Array(this.count);
    for (let at = 0; at < this.count; at += 1) {
      const device = this.#devices[at] ?? 0;
      const place = filled[device] ?? 0;
      order[place] = this.#stamps[at] ?? 0;
      filled[device] = place + 1;
    }
    this.#starts = starts;
    this.#order = order;
  }

  of(device: number): Uint32Array {
    const { '0': first, '1': last } = this.#starts?.subarray(device, device + 2) ?? [0, 0];
    return this.#order?.subarray(first ?? 0, last ?? 0) ?? new Uint32Array(0);
  }
}

function grown(array: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(array.length * 2);
  larger.set(array);
  return larger;
}

/** Entries in the ledgers of all processes. */
export function countLedgerEntries(folder: string, processes: number): number {
  let count = 0;
  for (let process = 0; process < processes; process += 1) {
    count += statSync(sendsFile(folder, process)).size / sendBytes;
    count += statSync(settlementsFile(folder, process)).size / settlementBytes;
  }
  return count;
}

/** Reads the sends of all processes. Doubt is in the highest bit. */
export function readSends(folder: string, processes: number): StampsByDevice {
  const sends = new StampsByDevice();
  for (let process = 0; process < processes; process += 1) {
    const bytes = readFileSync(sendsFile(folder, process));
    for (let at = 0; at < bytes.length; at += sendBytes) {
      sends.add(bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4));
    }
  }
  return sends;
}

/** Splits what a ledger has of a send. */
export function sentStamp(value: number): SentStamp {
  return { stamp: value & ~doubtBit, isDoubtful: value >= doubtBit };
}

/** Reads the settlements of all processes, by device. */
export function readSettlements(folder: string, processes: number): Map<number, SettledMail[]> {
  const settlements = new Map<number, SettledMail[]>();
  for (let process = 0; process < processes; process += 1) {
    const bytes = readFileSync(settlementsFile(folder, process));
    for (let at = 0; at < bytes.length; at += settlementBytes) {
      const device = bytes.readUInt32LE(at);
      const settled: SettledMail = {
        verb: settleVerbs[bytes.readUInt8(at + 4)] ?? 'ack',
        isDoubtful: bytes.readUInt8(at + 5) === 1,
        mailId: bytes.toString('hex', at + 8, at + 24),
      };
      addToGroup(settlements, device, settled);
    }
  }
  return settlements;
}
