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

/** Between two words that are looked at: whatever the heap holds there, its block headers alone are closer. */
const strideBytes = 512;

/**
 * How much of the machine's memory an engine takes. Its address space is 16 MB from the start and does not shrink;
 * the system provides a page when it is first written. The heap grows upwards, so the last page that is not zero
 * tells how far it has ever reached, whatever was freed again.
 */
class EngineMemory {
  readonly #memory: { readonly buffer: ArrayBuffer };
  readonly #reachedAtFirst: number;
  #reached: number;

  /** Of an engine that is new: what is before is its data, its stack and all that the language has. */
  constructor(memory: { readonly buffer: ArrayBuffer }) {
    this.#memory = memory;
    this.#reachedAtFirst = lastWritten(memory.buffer, 0);
    this.#reached = this.#reachedAtFirst;
  }

  /** What it has grown by. Costs up to half a millisecond where the memory was never looked at. */
  grownBytes(): number {
    this.#reached = lastWritten(this.#memory.buffer, this.#reached);
    return this.#reached - this.#reachedAtFirst;
  }
}

/** The last place that is not zero, from `least` on. */
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
/** The least that the WebAssembly module takes; pages that are not touched cost nothing. */
const pagesMin = 256;
const pagesMax = 32_768;
/** QuickJS stops at this much of its own stack; the thread's (`threadStackMegabytes`) must hold it, and does. */
const stackBytesMax = 262_144;
/** With 4 MB, deeply nested source reached the end of the thread's stack before that of the engine. */
export const threadStackMegabytes = 16;

/** What Node has of it, as far as it is needed here: TypeScript counts it among the browser's things. */
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  Memory: new (limits: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

let compiled: object | undefined;

/** The engine's machine code, which a thread can be handed: compiling it takes each of them some 20 ms. */
export function compileEngine(): Promise<object> {
  return WebAssembly.compile(
    readFileSync(createRequire(import.meta.url).resolve('@jitl/quickjs-wasmfile-release-sync/wasm')),
  );
}

/** What `compileEngine` made, on another thread, is that of this one too. */
export function useEngine(engine: object): void {
  compiled = engine;
}

/**
 * A JavaScript engine in a WebAssembly instance of its own, for one action alone: a fault in the engine that
 * lets code write where it should not reaches that instance's memory and no other action's, an engine that
 * trapped is thrown away whole, and so is all memory that an action made it grow to.
 */
export async function newEngine(memoryBytes: number): Promise<Engine> {
  compiled ??= await compileEngine();
  // A block that grows is there twice for a moment, so that the engine's own bound is met first.
  const pages = pagesMin + Math.ceil((2 * memoryBytes) / pageBytes);
  const wasmMemory = new WebAssembly.Memory({ initial: pagesMin, maximum: Math.min(pages, pagesMax) });
  const module = await newQuickJSWASMModuleFromVariant(
    newVariant(variant as unknown as QuickJSSyncVariant, {
      wasmModule: compiled,
      wasmMemory,
      // It prints when it aborts.
      emscriptenModule: { print: () => {}, printErr: () => {} } as object,
    }),
  );
  const runtime = module.newRuntime();
  runtime.setMaxStackSize(stackBytesMax);
  runtime.setModuleLoader((name) => ({
    error: new Error(`An action can import nothing, also not '${name}'.`),
  }));
  const context = runtime.newContext();
  return { runtime, context, memory: new EngineMemory(wasmMemory) };
}
