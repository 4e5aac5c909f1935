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
} from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { ProcessLock } from './process-lock.ts';

const [writeAsync, syncAsync, renameAsync] = [promisify(write), promisify(fdatasync), promisify(rename)];
/** For a file whose lines are appended, also once it was shortened. */
const emptied = constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND;
/** A journal is rewritten when it has grown to twice what it was rewritten to, but not for less than this. */
const rewriteBytesMin = 262_144;

/** Who keeps a state in a journal. */
export interface JournalOwner<Entry> {
  /** Changes the state by an entry: when it is appended, and in the same way when it is read again. */
  apply(entry: Entry): void;
  /** Forgets everything: all entries follow. */
  reset(): void;
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
      rmSync(`${path}.new`, { force: true });
      this.#file = openSync(path, 'a+', 0o600);
      const damaged = this.#read();
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
      else {
        await writeAll(this.#file, text);
        await syncAsync(this.#file);
        this.#bytes += text.length;
      }
    } catch (error) {
      this.#takeBack();
      throw error;
    }
  }

  async #rewrite(): Promise<void> {
    const text = Buffer.from([...this.#owner.snapshot()].map(lineOf).join(''));
    const file = openSync(`${this.#path}.new`, emptied, 0o600);
    try {
      await writeAll(file, text);
      await syncAsync(file);
      await renameAsync(`${this.#path}.new`, this.#path);
    } catch (error) {
      closeSync(file);
      throw error;
    }
    closeSync(this.#file);
    // Not opened again by its name: if that failed, the number of the old one would stand for some other file.
    this.#file = file;
    this.#bytes = text.length;
    this.#rewriteBytes = Math.max(rewriteBytesMin, 2 * text.length);
    syncFolderNow(dirname(this.#path));
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
    this.#lock.release();
  }
}

async function writeAll(file: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await writeAsync(file, bytes, at, bytes.length - at);
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
