import { type ChildProcess, fork } from 'node:child_process';

/** What the server tells its parent when it answers. */
export interface ReadyMessage {
  /** For stdout; only that of the first start is printed. */
  greeting: string;
  /** Flags with which the next start takes the same ports again, where the configuration says any. */
  restartFlags: readonly string[];
}

/** A server that dies before it is ready, or sooner after than this, has died at once. */
const shortLifeMs = 5_000;
/** Waited before the restart that follows so many short lives in a row; one more, and there is no restart. */
const restartDelaysMs = [0, 100, 200, 400, 800];

/**
 * The process that an operator starts. An uncaught error in any thread ends the server's process, and so does
 * the system when memory runs out: so that one is a child, and is started again. This one does as good as
 * nothing and loads as good as nothing, so that nothing of its own can end it.
 */
class Parent {
  readonly #file: string;
  readonly #arguments: readonly string[];
  #child: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #restartFlags: readonly string[] = [];
  #readyAtMs = 0;
  #shortLives = 0;
  #isReady = false;
  #wasReady = false;
  #isStopping = false;
  #reloads = false;

  constructor(file: string, args: readonly string[]) {
    this.#file = file;
    this.#arguments = args;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.#stop(signal));
    process.on('SIGHUP', () => this.#reload());
    this.#start();
  }

  #start(): void {
    this.#isReady = false;
    const child = fork(this.#file, withFlags(this.#arguments, this.#restartFlags));
    this.#child = child;
    child.on('message', (message) => this.#onReady(message as ReadyMessage));
    child.on('exit', (status, signal) => this.#onExit(status, signal));
  }

  #onReady({ greeting, restartFlags }: ReadyMessage): void {
    this.#isReady = true;
    this.#readyAtMs = performance.now();
    if (!this.#wasReady) {
      this.#wasReady = true;
      // What a later start was told by these flags, it has no need to say.
      this.#restartFlags = restartFlags;
      process.stdout.write(`${greeting}\n`);
    }
    if (this.#reloads) this.#reload();
  }

  /** Before the child is ready it has no handler yet, and the signal would end it. */
  #reload(): void {
    this.#reloads = !this.#isReady;
    if (this.#isReady) this.#child?.kill('SIGHUP');
  }

  #stop(signal: NodeJS.Signals): void {
    this.#isStopping = true;
    if (this.#restart !== undefined) this.#end(null, signal);
    else this.#child?.kill(signal);
  }

  #onExit(status: number | null, signal: NodeJS.Signals | null): void {
    // A start that fails says why and ends with a status: the next one would say the same.
    const isOver = status === 0 || (status !== null && !this.#isReady);
    if (this.#isStopping || isOver) {
      this.#end(status, signal);
      return;
    }
    const reason = `the server process ended with ${signal ?? `status ${status}`}`;
    if (this.#isReady && performance.now() - this.#readyAtMs >= shortLifeMs) this.#shortLives = 0;
    const delayMs = restartDelaysMs[this.#shortLives];
    this.#shortLives += 1;
    if (delayMs === undefined) {
      process.stderr.write(
        `fleetpost: ${reason}, for the ${this.#shortLives}th time in a row within ${shortLifeMs / 1_000} s of being ready; giving up. The log above says why, or the system's log where memory ran out.\n`,
      );
      process.exit(1);
    }
    log(`${reason}; it is started again`);
    this.#restart = setTimeout(() => {
      this.#restart = undefined;
      this.#start();
    }, delayMs);
  }

  /** As the child did. */
  #end(status: number | null, signal: NodeJS.Signals | null): void {
    if (signal === null) process.exit(status ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
}

/** With these flags in place of the operator's own of the same names: each can be given once. */
function withFlags(args: readonly string[], flags: readonly string[]): string[] {
  const kept = [...args];
  for (const flag of flags) {
    const at = kept.findIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
    if (at >= 0) kept.splice(at, kept[at] === flag ? 2 : 1);
  }
  return [...kept, ...flags];
}

/** As pino writes an error: its own code would be most of what this process loads. */
function log(message: string): void {
  process.stderr.write(`${JSON.stringify({ level: 50, time: Date.now(), msg: message })}\n`);
}

/** Whether this process is to be the parent of one that serves. A child has a channel to its parent. */
export function isParent(args: readonly string[]): boolean {
  const asksForHelp = args.includes('--help') || args.includes('-h');
  return args[0] === 'serve' && !args.includes('--no-parent') && !asksForHelp && process.send === undefined;
}

/** Runs `file` with these arguments in a child process, again whenever it dies, and ends as it ends. */
export function superviseChild(file: string, args: readonly string[]): void {
  new Parent(file, args);
}
