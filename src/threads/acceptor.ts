import { MessageChannel, Worker } from 'node:worker_threads';
import { parseHostPort } from '../core/address.ts';
import type { TlsFiles } from '../core/config/tls.ts';
import { OperatorError } from '../core/errors.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { AppDescriptor } from '../device-api/uws/uws.ts';
import type { ThreadConfig, ThreadSettings } from './config.ts';
import { Channel } from './relay/channel.ts';
import type { AcceptorStart, SharedCounters } from './relay/messages.ts';
import { endProcess } from './watchdog.ts';

/** Old and young generation: the thread keeps next to nothing, and V8 would reserve by the size of the machine. */
const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };

export interface AcceptorOptions {
  config: Pick<ThreadConfig, 'settings'>;
  tls: TlsFiles;
  workers: number;
  counters: SharedCounters;
  log: Log;
}

/** The main thread's end of the acceptor thread. Each call settles when the acceptor has done it. */
export class Acceptor {
  readonly #channel: Channel;
  readonly #exited: Promise<void>;
  #closing = false;

  constructor({ config, tls, workers, counters, log }: AcceptorOptions) {
    const { port1, port2 } = new MessageChannel();
    const start: AcceptorStart = {
      settings: config.settings,
      tls,
      workers,
      counters,
      mainPort: port1,
    };
    const worker = new Worker(new URL('./acceptor-thread.js', import.meta.url), {
      workerData: start,
      resourceLimits,
      transferList: [port1],
    });
    this.#exited = new Promise((resolve) => worker.once('exit', () => resolve()));
    worker.on('error', (error) => endProcess(log, 'the acceptor failed', error));
    worker.on('exit', () => {
      if (!this.#closing) endProcess(log, 'the acceptor ended');
    });
    this.#channel = new Channel(
      port2,
      (_, { reject }) => reject(new Error('the acceptor asks nothing')),
      () => {},
    );
  }

  /** Answers the port that was taken. @throws OperatorError when it cannot be had. */
  async listen(address: string): Promise<number> {
    const port = (await this.#channel.ask({ type: 'listen', ...parseHostPort(address) })) as
      | number
      | undefined;
    if (port === undefined) {
      throw new OperatorError(`Cannot listen on ${address}. Is another server using it?`);
    }
    return port;
  }

  async stopListening(): Promise<void> {
    await this.#channel.ask({ type: 'stopListening' });
  }

  /** Deals new connections to this app too. */
  async deal(descriptor: AppDescriptor): Promise<void> {
    await this.#channel.ask({ type: 'deal', descriptor });
  }

  async stopDealing(descriptor: AppDescriptor): Promise<void> {
    await this.#channel.ask({ type: 'stopDealing', descriptor });
  }

  /** Ends the process when a thread stands still. */
  async watchThreads(): Promise<void> {
    await this.#channel.ask({ type: 'watchThreads' });
  }

  async configure(values: Partial<ThreadSettings>): Promise<void> {
    await this.#channel.ask({ type: 'configure', values });
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#channel.ask({ type: 'close' });
    await this.#exited;
    this.#channel.close();
  }
}
