import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { OperatorError } from '../../../core/errors.ts';
import type { DevicesOrder, DevicesReport, DevicesTask, DevicesWord } from '../devices/orders.ts';

const processFile = new URL('../devices/device-process.js', import.meta.url);

/** The processes that hold all devices: one a core. They end with this one. */
export class DeviceProcesses implements Disposable {
  readonly #children: readonly ChildProcess[];
  readonly #ended: Promise<never>;
  #unfinished = 0;

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
    this.#ended = Promise.race(children.map(failWithEnd));
    this.#ended.catch(() => {});
  }

  /** Starts them with their tasks. @throws OperatorError when one ends by itself. */
  static async start(
    tasks: readonly DevicesTask[],
    onReport: (process: number, report: DevicesReport) => void,
  ): Promise<DeviceProcesses> {
    const children = tasks.map(() =>
      fork(processFile, { stdio: ['ignore', 2, 2, 'ipc'], serialization: 'advanced' }),
    );
    const processes = new DeviceProcesses(children);
    await processes.#until(children.map((child) => once(child, 'message')));
    for (const [index, child] of children.entries()) {
      child.on('message', (word) => {
        const said = word as DevicesWord;
        if (said.type === 'report') onReport(index, said.report);
        else if (said.type === 'finished') processes.#unfinished += said.unfinished;
      });
      child.send({ type: 'begin', task: tasks[index] } satisfies {
        type: 'begin';
        task: DevicesTask | undefined;
      });
    }
    return processes;
  }

  /** Rejects when one ends by itself. */
  get ended(): Promise<never> {
    return this.#ended;
  }

  order(order: DevicesOrder): void {
    for (const child of this.#children) child.send(order);
  }

  /** An order about one device goes to the process that has it. */
  orderOne(process: number, order: DevicesOrder): void {
    this.#children[process]?.send(order);
  }

  /** Lets all come to their end; answers how much never got its answer. */
  async finish(drainMs: number): Promise<number> {
    const finished = this.#children.map(
      (child) =>
        new Promise<void>((resolve) => {
          child.on('message', (word) => {
            if ((word as DevicesWord).type === 'finished') resolve();
          });
        }),
    );
    this.order({ type: 'finish', drainMs });
    await this.#until(finished);
    return this.#unfinished;
  }

  [Symbol.dispose](): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  async #until(promises: readonly Promise<unknown>[]): Promise<void> {
    await Promise.race([Promise.all(promises), this.#ended]);
  }
}

async function failWithEnd(child: ChildProcess): Promise<never> {
  const [status, signal] = await once(child, 'exit');
  throw new OperatorError(`A process of simulated devices ended with ${signal ?? status}; see above.`);
}
