import { type ChildProcess, fork } from 'node:child_process';
import { notifyReady } from './systemd.ts';

/** Sent by the server to its parent when it is ready. */
export interface ReadyMessage {
  /** Printed to stdout at the first start only. */
  greeting: string;
  /** Flags that make the next start reuse the ports, if the configuration allows any. */
  restartFlags: readonly string[];
}

/** Uptime below which a crash counts as a crash at start. */
const shortLifeMs = 5_000;
/** Backoff before the second restart in a row; it doubles with each. */
const restartMs = 100;
const restartMsMax = 60_000;

/**
 * Backoff before the restart after so many crashes at start in a row. It never ends: a crash that can be repeated from
 * outside must not be final.
 */
export function restartDelayMs(crashes: number): number {
  return crashes < 2 ? 0 : Math.min(restartMs * 2 ** (crashes - 2), restartMsMax);
}

/**
 * The process that an operator starts. An uncaught error in any thread ends the server's process, and so does the
 * system when memory runs out: so the server is a child, which is restarted. The parent does and loads almost nothing,
 * so that nothing of its own can end it.
 */
class Parent {
  readonly #file: string;
  #arguments: readonly string[];
  #child: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #restartFlags: readonly string[] = [];
  #readyAtMs = 0;
  #crashes = 0;
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
      // Later starts run with these flags already.
      this.#restartFlags = restartFlags;
      // The hold is stored by now; a release must outlive a crash.
      this.#arguments = this.#arguments.filter((arg) => arg !== '--paused');
      process.stdout.write(`${greeting}\n`);
      notifyReady();
    }
    if (this.#reloads) this.#reload();
  }

  /** Deferred until the child is ready: before, it has no handler, and the signal would end it. */
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
    // A failed start reports its error and exits with a status; another one would fail in the same way.
    const isFinal = status === 0 || (status !== null && !this.#isReady);
    if (this.#isStopping || isFinal) {
      this.#end(status, signal);
      return;
    }
    const reason = `the server process ended with ${signal ?? `status ${status}`}`;
    if (this.#isReady && performance.now() - this.#readyAtMs >= shortLifeMs) this.#crashes = 0;
    this.#crashes += 1;
    const delayMs = restartDelayMs(this.#crashes);
    log(
      delayMs === 0
        ? `${reason}; restarting`
        : `${reason}, ${this.#crashes} times in a row within ${shortLifeMs / 1_000} s of being ready; restarting in ${delayMs / 1_000} s. The log above says why, or the system's log where memory ran out.`,
    );
    this.#restart = setTimeout(() => {
      this.#restart = undefined;
      this.#start();
    }, delayMs);
  }

  /** Ends as the child did. */
  #end(status: number | null, signal: NodeJS.Signals | null): void {
    if (signal === null) process.exit(status ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
}

/** Replaces the operator's flags of the same names, because each can occur only once. */
function withFlags(args: readonly string[], flags: readonly string[]): string[] {
  const others = [...args];
  for (const flag of flags) {
    const at = others.findIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
    if (at >= 0) others.splice(at, others[at] === flag ? 2 : 1);
  }
  return [...others, ...flags];
}

/** Logs an error in pino's format; pino itself would be most of what this process loads. */
function log(message: string): void {
  process.stderr.write(`${JSON.stringify({ level: 50, time: Date.now(), msg: message })}\n`);
}

/** True if this process should supervise a child that serves. A child has a channel to its parent. */
export function isParent(args: readonly string[]): boolean {
  const asksForHelp = args.includes('--help') || args.includes('-h');
  return args[0] === 'serve' && !args.includes('--no-parent') && !asksForHelp && process.send === undefined;
}

/** Runs `file` with these arguments in a child process, restarts it after crashes, and ends as it ends. */
export function superviseChild(file: string, args: readonly string[]): void {
  new Parent(file, args);
}
