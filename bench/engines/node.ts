import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { scriptArguments } from '../servers/server-process.ts';
import type { LoopOptions, LoopResult } from './loops.ts';
import type { NodeOptions } from './node-process.ts';

const file = new URL('node-process.ts', import.meta.url);

/** A process that has the shard of one engine open, and asks it as many callers do. */
export class EngineNode {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(options: NodeOptions): Promise<EngineNode> {
    const [flag = '', loader = '', , argument = ''] = scriptArguments(file, options);
    const child = fork(fileURLToPath(file), [argument], { execArgv: [flag, loader] });
    const node = new EngineNode(child);
    await node.#message();
    return node;
  }

  loop(options: LoopOptions): Promise<LoopResult> {
    this.#child.send(options);
    return this.#message() as Promise<LoopResult>;
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }

  async #message(): Promise<unknown> {
    const done = new AbortController();
    const ended = once(this.#child, 'exit', { signal: done.signal }).then(() => {
      throw new Error('a node of the benchmark ended');
    });
    try {
      const [message] = await Promise.race([once(this.#child, 'message', { signal: done.signal }), ended]);
      return message;
    } finally {
      ended.catch(() => {});
      done.abort();
    }
  }
}
