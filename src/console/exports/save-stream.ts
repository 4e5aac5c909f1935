import { CallError } from '../server/call-error.ts';

/** What of an answer is in the file. */
export interface SavedStream {
  bytes: number;
  lines: number;
  /** The page could hold no more: the file ends with the last line before that. */
  isCut: boolean;
}

/** Takes the lines of an answer, as they come. */
export interface Sink {
  write(chunk: Uint8Array): Promise<void>;
  /** The file is whole. */
  close(): Promise<void>;
  abort(): Promise<void>;
}

/** A browser without files to write into holds an answer until it is whole: so much of it. */
const heldBytesMax = 256 * 1024 * 1024;
const lineEnd = 10;

/** Holds what is written up to a bound, to be handed over as one file. */
export class HeldSink implements Sink {
  readonly #pieces: Uint8Array[] = [];
  readonly #bytesMax: number;
  readonly #save: (content: Blob) => void;
  #bytes = 0;

  constructor(save: (content: Blob) => void, bytesMax = heldBytesMax) {
    this.#save = save;
    this.#bytesMax = bytesMax;
  }

  /** How much more it holds. */
  get free(): number {
    return this.#bytesMax - this.#bytes;
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
  }

  async close(): Promise<void> {
    this.#save(new Blob(this.#pieces as Uint8Array<ArrayBuffer>[]));
  }

  async abort(): Promise<void> {
    this.#pieces.length = 0;
  }
}

/** Writes whole lines of an answer into a file, and tells how far it is. @throws CallError. */
export async function saveLines(
  { body }: Response,
  sink: Sink & { readonly free?: number },
  onProgress: (saved: SavedStream) => void,
): Promise<void> {
  const saved: SavedStream = { bytes: 0, lines: 0, isCut: false };
  const reader = body?.getReader();
  // The beginning of a line whose end has not come: a file that ends early ends with a line.
  let rest = new Uint8Array(0);
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      const chunk = joined(rest, value);
      const end = done ? chunk.length : chunk.lastIndexOf(lineEnd) + 1;
      const whole = withoutEmptyLines(chunk.subarray(0, end));
      rest = chunk.slice(end);
      if (whole.length > (sink.free ?? Number.POSITIVE_INFINITY)) {
        saved.isCut = true;
        await reader?.cancel();
      } else if (whole.length > 0) {
        await sink.write(whole);
        saved.bytes += whole.length;
        saved.lines += whole.reduce((sum, byte) => sum + (byte === lineEnd ? 1 : 0), 0);
      }
      onProgress({ ...saved });
      if (done || saved.isCut) break;
    }
    await sink.close();
  } catch (error) {
    await sink.abort().catch(() => undefined);
    if (error instanceof CallError || (error as Error).name === 'AbortError') throw error;
    throw new CallError(0, { error: 'stream_broken', msg: 'The answer broke off: nothing was saved.' });
  }
}

/** Leaves out the lines with nothing in them, which keep a stream open that has nothing to say. */
function withoutEmptyLines(lines: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const hasEmpty = lines.some((byte, at) => byte === lineEnd && (at === 0 || lines[at - 1] === lineEnd));
  if (!hasEmpty) return lines;
  const text = new TextDecoder().decode(lines).split('\n').filter(Boolean).join('\n');
  return new TextEncoder().encode(text === '' ? '' : `${text}\n`);
}

function joined(first: Uint8Array, second: Uint8Array | undefined): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(first.length + (second?.length ?? 0));
  all.set(first);
  if (second !== undefined) all.set(second, first.length);
  return all;
}

/** As Chromium has it; other browsers hold the file until it is whole. */
interface FilePicker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{
    createWritable(): Promise<{
      write(chunk: Uint8Array): Promise<void>;
      close(): Promise<void>;
      abort(): Promise<void>;
    }>;
  }>;
}

/** Asks for a file where the browser writes into one, which takes a click of just now. @throws CallError. */
export async function openSink(name: string, save: (content: Blob, name: string) => void): Promise<Sink> {
  const { showSaveFilePicker } = globalThis as FilePicker;
  if (showSaveFilePicker === undefined) return new HeldSink((content) => save(content, name));
  try {
    return await (await showSaveFilePicker({ suggestedName: name })).createWritable();
  } catch (error) {
    if ((error as Error).name !== 'AbortError') return new HeldSink((content) => save(content, name));
    throw new CallError(0, { error: 'no_file', msg: 'No file was chosen.' });
  }
}
