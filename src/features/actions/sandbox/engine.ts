import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import variant from '@jitl/quickjs-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core';

/** Distance between probed words. Heap block headers are closer than this, whatever the heap holds. */
const strideBytes = 512;

/**
 * Measures the memory of an engine. Its address space is 16 MB from the start and does not shrink; the system provides
 * a page when it is first written. The heap grows upwards, so the last nonzero word tells how far it has ever reached,
 * even if freed since.
 */
class EngineMemory {
  readonly #memory: { readonly buffer: ArrayBuffer };
  readonly #reachedAtFirst: number;
  #reached: number;

  /** Call with a new engine: what it holds by then is its data, its stack and the language's objects. */
  constructor(memory: { readonly buffer: ArrayBuffer }) {
    this.#memory = memory;
    this.#reachedAtFirst = lastWritten(memory.buffer, 0);
    this.#reached = this.#reachedAtFirst;
  }

  /** Growth since the engine was new. Takes up to half a millisecond where the memory was never probed. */
  grownBytes(): number {
    this.#reached = lastWritten(this.#memory.buffer, this.#reached);
    return this.#reached - this.#reachedAtFirst;
  }
}

/** Offset of the last nonzero probed word, at least `least`. */
function lastWritten(buffer: ArrayBuffer, least: number): number {
  const words = new Int32Array(buffer);
  const stride = strideBytes / Int32Array.BYTES_PER_ELEMENT;
  const first = least / Int32Array.BYTES_PER_ELEMENT;
  for (let at = words.length - stride; at > first; at -= stride) if (words[at] !== 0) return 4 * at;
  return least;
}

export interface Engine {
  runtime: QuickJSRuntime;
  context: QuickJSContext;
  memory: EngineMemory;
}

const pageBytes = 65_536;
/** The minimum of the WebAssembly module; untouched pages cost nothing. */
const pagesMin = 256;
const pagesMax = 32_768;
/** Stack limit inside QuickJS. The thread's own stack (`threadStackMegabytes`) must be large enough for it, and is. */
const stackBytesMax = 262_144;
/** Stack of a thread: with 4 MB, deeply nested source exhausted it before the engine's. */
export const threadStackMegabytes = 16;

/** The part of Node's WebAssembly used here, as TypeScript has it only in the DOM library. */
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  Memory: new (limits: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

let compiled: object | undefined;

/** Compiles the engine once to share it with threads, as compiling takes each of them some 20 ms. */
export function compileEngine(): Promise<object> {
  return WebAssembly.compile(
    readFileSync(createRequire(import.meta.url).resolve('@jitl/quickjs-wasmfile-release-sync/wasm')),
  );
}

/** Uses on this thread what `compileEngine` returned on another. */
export function useEngine(engine: object): void {
  compiled = engine;
}

/**
 * Creates a JavaScript engine in a WebAssembly instance of its own, for one action alone: an engine fault that lets
 * code write out of bounds reaches only that instance's memory, a trapped engine is discarded whole, and so is all
 * memory an action made it grow to.
 */
export async function newEngine(memoryBytes: number): Promise<Engine> {
  compiled ??= await compileEngine();
  // Doubled, as a growing block exists twice for a moment: the engine's own limit has to be met first.
  const pages = pagesMin + Math.ceil((2 * memoryBytes) / pageBytes);
  const wasmMemory = new WebAssembly.Memory({ initial: pagesMin, maximum: Math.min(pages, pagesMax) });
  const module = await newQuickJSWASMModuleFromVariant(
    newVariant(variant as unknown as QuickJSSyncVariant, {
      wasmModule: compiled,
      wasmMemory,
      // Silences what it prints on abort.
      emscriptenModule: { print: () => {}, printErr: () => {} } as object,
    }),
  );
  const runtime = module.newRuntime();
  runtime.setMaxStackSize(stackBytesMax);
  runtime.setModuleLoader((name) => ({
    error: new Error(`An action cannot import anything, including '${name}'.`),
  }));
  const context = runtime.newContext();
  return { runtime, context, memory: new EngineMemory(wasmMemory) };
}
