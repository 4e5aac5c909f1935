import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { RunningServer } from '../servers/subject.ts';
import type { Order, Word } from './stream-holder.ts';

const file = new URL('stream-holder.ts', import.meta.url).pathname;

/** Two, so that a pause of one delays half of the announcements and not all. */
const holderCount = 2;

/** Processes that hold event streams; gone with this one, or when it is disposed of. */
export class StreamHolders implements Disposable {
  readonly #children: readonly ChildProcess[];
  /** Rejects when one of them ends. */
  readonly #ended: Promise<never>;

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
    this.#ended = Promise.race(children.map(ended));
    // The end of a holder is reported to the caller that waits for a word; here it must not count as unhandled.
    this.#ended.catch(() => {});
  }

  /** Opens a stream for each request. @throws Error when one cannot be opened. */
  static async open(server: RunningServer, requests: readonly string[]): Promise<StreamHolders> {
    const children = Array.from({ length: holderCount }, () => fork(file));
    const holders = new StreamHolders(children);
    const { url, certFile } = server;
    try {
      await holders.#ask((index) => ({
        type: 'hold',
        hold: { url, certFile, requests: requests.filter((_, at) => at % holderCount === index) },
      }));
    } catch (error) {
      holders[Symbol.dispose]();
      throw error;
    }
    return holders;
  }

  /**
   * Latencies of the announcements since the last report, in no order, and how many streams have been closed in all.
   */
  async report(): Promise<{ latenciesMicroseconds: number[]; closed: number }> {
    const words = await this.#ask(() => ({ type: 'report' }));
    const reports = words.filter((word) => word.type === 'report');
    return {
      latenciesMicroseconds: reports.flatMap((report) => report.latenciesMicroseconds),
      closed: reports.reduce((sum, { closed }) => sum + closed, 0),
    };
  }

  [Symbol.dispose](): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  #ask(orderOf: (index: number) => Order): Promise<Word[]> {
    return Promise.all(
      this.#children.map(async (child, index) => {
        child.send(orderOf(index));
        const word = await Promise.race([wordOf(child), this.#ended]);
        if (word.type === 'failed') throw new Error(`an event stream could not be opened: ${word.reason}`);
        return word;
      }),
    );
  }
}

function wordOf(child: ChildProcess): Promise<Word> {
  return new Promise((resolve) => child.once('message', (word) => resolve(word as Word)));
}

async function ended(child: ChildProcess): Promise<never> {
  await once(child, 'exit');
  throw new Error('a process that holds event streams has ended');
}
