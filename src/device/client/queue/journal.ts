import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rename,
  rmSync,
  statSync,
  write,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { ProcessLock } from './process-lock.ts';

const [writeAsync, syncAsync, renameAsync] = [promisify(write), promisify(fdatasync), promisify(rename)];
/**
 * What the next rewriting goes into is there before, with room for this: so a disk that is full can be given back what
 * the journal takes of it.
 */
const reserveBytes = 4_096;
/** A journal is rewritten when it has grown to twice what it was rewritten to, but not for less than this. */
const rewriteBytesMin = 262_144;

/** Who keeps a state in a journal. */
export interface JournalOwner<Entry> {
  /** Changes the state by an entry: when it is appended, and in the same way when it is read again. */
  apply(entry: Entry): void;
  /** Forgets everything: all entries follow. */
  reset(): void;
  /** So many lines could not be read. */
  damaged(lines: number): void;
  /** Entries that lead to the state as it is now. */
  snapshot(): Iterable<Entry>;
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);
const lineOf = (entry: unknown): string => {
  const text = JSON.stringify(entry);
  return `${digestOf(text)} ${text}\n`;
};

/**
 * A state on disk as lines of JSON, each with a digest: appended, synced, and rewritten now and then. A line that was
 * torn by a loss of power, or that has decayed, is left out. Entries that wait for the disk are written together.
 */
export class QueueJournal<Entry> {
  readonly #path: string;
  readonly #owner: JournalOwner<Entry>;
  readonly #lock: ProcessLock;
  #file: number;
  #bytes = 0;
  #rewriteBytes: number;
  #waiting: Entry[] = [];
  #next: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve();

  /** Opens it and has the owner apply what it holds. Throws if another process has it open. */
  constructor(path: string, owner: JournalOwner<Entry>) {
    this.#path = path;
    this.#owner = owner;
    this.#lock = ProcessLock.take(`${path}.lock`);
    try {
      this.#file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
      this.#reserve();
      const damaged = this.#read();
      this.#owner.damaged(damaged);
      // A file whose name is not on disk is gone after a loss of power, with all that is in it.
      if (this.#bytes === 0) syncFolderNow(dirname(path));
      // A torn line would swallow what is appended to it.
      this.#rewriteBytes = damaged > 0 ? 0 : Math.max(rewriteBytesMin, this.#bytes);
    } catch (error) {
      this.#lock.release();
      throw error;
    }
  }

  /** Returns how many lines were left out. */
  #read(): number {
    let damaged = 0;
    this.#bytes = statSync(this.#path).size;
    const text = readFileSync(this.#path, 'utf8');
    const lines = text.split('\n');
    // The text ends with a line break unless the last line was torn.
    if (lines.pop() !== '') damaged += 1;
    for (const line of lines) {
      const [digest = '', entry = ''] = [line.slice(0, 16), line.slice(17)];
      if (digest === digestOf(entry)) this.#owner.apply(JSON.parse(entry) as Entry);
      else damaged += 1;
    }
    return damaged;
  }

  /** Applies an entry at once, and resolves when it is on disk. If the disk refuses it, it is taken back. */
  append(entry: Entry): Promise<void> {
    this.#owner.apply(entry);
    this.#waiting.push(entry);
    if (this.#next === undefined) {
      this.#next = this.#last.then(() => this.#write());
      this.#last = this.#next.catch(() => {});
    }
    return this.#next;
  }

  async #write(): Promise<void> {
    const entries = this.#waiting;
    [this.#waiting, this.#next] = [[], undefined];
    const text = Buffer.from(entries.map(lineOf).join(''));
    try {
      if (this.#bytes + text.length > this.#rewriteBytes) await this.#rewrite();
      // On a disk that is full there may be room for what is left of it.
      else await this.#append(text).catch(() => this.#rewrite(this.#bytes / 2));
    } catch (error) {
      this.#takeBack();
      throw error;
    }
  }

  async #append(text: Buffer): Promise<void> {
    await writeAll(this.#file, text, this.#bytes);
    await syncAsync(this.#file);
    this.#bytes += text.length;
  }

  /** Makes the file that the next rewriting goes into, as far as there is room. */
  #reserve(): void {
    try {
      writeFileSync(`${this.#path}.new`, Buffer.alloc(reserveBytes), { mode: 0o600 });
    } catch {
      // Then that file is shorter, or not there.
    }
  }

  async #rewrite(bytesMax = Number.POSITIVE_INFINITY): Promise<void> {
    const text = Buffer.from([...this.#owner.snapshot()].map(lineOf).join(''));
    if (text.length > bytesMax) throw new Error('The disk has no room for the queue.');
    const file = openSync(`${this.#path}.new`, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      await writeAll(file, text, 0);
      ftruncateSync(file, text.length);
      await syncAsync(file);
      await renameAsync(`${this.#path}.new`, this.#path);
    } catch (error) {
      ftruncateSync(file, reserveBytes);
      closeSync(file);
      throw error;
    }
    closeSync(this.#file);
    // Not opened again by its name: if that failed, the number of the old one would stand for some other file.
    this.#file = file;
    this.#bytes = text.length;
    this.#rewriteBytes = Math.max(rewriteBytesMin, 2 * text.length);
    syncFolderNow(dirname(this.#path));
    this.#reserve();
  }

  /** Makes the state again what is on disk, and what still waits for it. */
  #takeBack(): void {
    try {
      ftruncateSync(this.#file, this.#bytes);
    } catch {
      this.#rewriteBytes = 0;
    }
    this.#owner.reset();
    this.#read();
    for (const entry of this.#waiting) this.#owner.apply(entry);
  }

  /** Waits for what was appended. */
  async close(): Promise<void> {
    await this.#last;
    closeSync(this.#file);
    rmSync(`${this.#path}.new`, { force: true });
    this.#lock.release();
  }
}

async function writeAll(file: number, bytes: Buffer, from: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await writeAsync(file, bytes, at, bytes.length - at, from + at);
    at += bytesWritten;
  }
}

function syncFolderNow(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
