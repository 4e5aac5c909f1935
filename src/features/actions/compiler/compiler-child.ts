import { type ChildProcess, fork } from 'node:child_process';
import type { CompilerMessage, CompilerTask } from './compiler-process.ts';
import { type ProcessUsage, usageOf } from './process-usage.ts';

/** A small action takes some hundredths of a second and 130 MB; types can be made that take minutes and gigabytes. */
export const compilerLimits = { cpuMilliseconds: 5_000, heapMegabytes: 256 } as const;
/** Resident memory limit, including what the engine holds beside its heap. */
const residentBytesMax = 536_870_912;
/** Against a process that never starts. On a busy machine one may wait long for a processor, and is not at fault. */
const wallMilliseconds = 300_000;
const watchMilliseconds = 50;

/** Why a process is lost: `depth`, its task is nested too deeply; `ended`, by itself or by somebody else. */
export type CompilerLossReason = 'memory' | 'cpu' | 'wall' | 'depth' | 'ended';

export const noLosses: Readonly<Record<CompilerLossReason, number>> = {
  memory: 0,
  cpu: 0,
  wall: 0,
  depth: 0,
  ended: 0,
};

export interface CompilerLoss {
  loss: CompilerLossReason;
  /** CPU time of the task. */
  cpuMilliseconds: number;
}

export type TaskAnswer = Extract<CompilerMessage, { type: 'translated' | 'checked' }>;

/** Signals by which the engine ends a process without memory left, and the system one that has most of it. */
const signalsOfMemory: ReadonlySet<NodeJS.Signals> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGKILL']);

/** One process of the compiler, started at once. After a loss it is of no more use. */
export class CompilerChild {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #ready: Promise<void>;
  #usage: ProcessUsage | undefined;
  #onMessage: (message: CompilerMessage) => void = () => {};
  #loss: CompilerLossReason | undefined;

  constructor(file: URL) {
    this.#child = fork(file, {
      execArgv: [`--max-old-space-size=${compilerLimits.heapMegabytes}`],
      // Nothing of the server's environment, and no folder of its own that a core could be left in.
      env: {},
      cwd: '/',
      // Its input is how it notices the end of the server; it says nothing but by messages.
      stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
    });
    this.#child.on('message', (message: CompilerMessage) => this.#onMessage(message));
    this.#ended = new Promise((resolve) => {
      this.#child.once('exit', (_, signal) => {
        this.#loss ??= signal !== null && signalsOfMemory.has(signal) ? 'memory' : 'ended';
        resolve();
      });
      // It could not be started, or a message not be sent.
      this.#child.on('error', () => {
        this.#loss ??= 'ended';
        this.#child.kill('SIGKILL');
        resolve();
      });
    });
    this.#ready = this.#next().then(() => {});
  }

  /** As seen last. */
  get residentBytes(): number {
    return this.#usage?.residentBytes ?? 0;
  }

  /** True if it has ended, between two tasks too: the system ends it first where memory is short. */
  get isLost(): boolean {
    return this.#loss !== undefined;
  }

  /** Performs one task at a time. Its start is not counted against the first. */
  async perform(task: CompilerTask): Promise<TaskAnswer | CompilerLoss> {
    const startMs = performance.now();
    let beforeMs = 0;
    const look = (): void => {
      this.#usage = this.#child.pid === undefined ? undefined : (usageOf(this.#child.pid) ?? this.#usage);
    };
    const spentMs = (): number => (this.#usage?.cpuMilliseconds ?? 0) - beforeMs;
    const timer = setInterval(() => {
      look();
      if (performance.now() - startMs > wallMilliseconds) this.#kill('wall');
      else if (this.residentBytes > residentBytesMax) this.#kill('memory');
      else if (beforeMs > 0 && spentMs() > compilerLimits.cpuMilliseconds) this.#kill('cpu');
    }, watchMilliseconds);
    try {
      await Promise.race([this.#ready, this.#ended]);
      look();
      beforeMs = this.#usage?.cpuMilliseconds ?? 0;
      const answered = this.#next();
      if (this.#loss === undefined) this.#child.send(task);
      const message = await Promise.race([answered, this.#ended]);
      look();
      if (message?.type === 'checked' || message?.type === 'translated') return message;
      if (message?.type === 'failed') this.#kill('depth');
      await this.#ended;
      return { loss: this.#loss ?? 'ended', cpuMilliseconds: spentMs() };
    } finally {
      clearInterval(timer);
    }
  }

  async end(): Promise<void> {
    this.#kill('ended');
    await this.#ended;
  }

  #next(): Promise<CompilerMessage> {
    return new Promise((resolve) => {
      this.#onMessage = resolve;
    });
  }

  #kill(loss: CompilerLossReason): void {
    this.#loss ??= loss;
    this.#child.kill('SIGKILL');
  }
}
