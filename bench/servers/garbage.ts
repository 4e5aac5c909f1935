import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'undici';

/** Where Node's inspector listens after SIGUSR1. */
const inspector = 'http://127.0.0.1:9229/json/list';
const openingMs = 5_000;
const pollMs = 50;

interface Message {
  id?: number;
  method?: string;
  params?: { sessionId?: string; message?: string };
  result?: { result?: { value?: unknown } };
}

/**
 * Has a Node process collect the garbage of all its threads, through its inspector: what remains resident
 * then is in use, where the size of a heap at any other moment is chance.
 * @throws Error when the inspector cannot be had, its port being another process's, say.
 */
export async function collectGarbage(pid: number): Promise<void> {
  process.kill(pid, 'SIGUSR1');
  const session = await Session.open();
  try {
    const { result } = await session.ask('Runtime.evaluate', { expression: 'process.pid' });
    if (result?.result?.value !== pid)
      throw new Error('Port 9229, of the inspector, is in use by another process.');
    await session.ask('NodeWorker.enable', { waitForDebuggerOnStart: false });
    for (const worker of [undefined, ...session.workers]) {
      await session.ask('HeapProfiler.collectGarbage', {}, worker);
    }
  } finally {
    session.close();
  }
}

/** A conversation with the inspector of a process: with its main thread and, through that, its workers. */
class Session {
  /** Known once NodeWorker is enabled. */
  readonly workers: string[] = [];
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Message) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#receive(String(data)));
  }

  static async open(): Promise<Session> {
    const socket = new WebSocket(await inspectorUrl());
    await once(socket, 'open');
    return new Session(socket);
  }

  ask(method: string, params: object, worker?: string): Promise<Message> {
    return new Promise((resolve) => {
      this.#lastId += 1;
      this.#waiting.set(this.#lastId, resolve);
      const message = { id: this.#lastId, method, params };
      if (worker === undefined) this.#send(message);
      else {
        const wrapped = { sessionId: worker, message: JSON.stringify(message) };
        this.#send({ id: 0, method: 'NodeWorker.sendMessageToWorker', params: wrapped });
      }
    });
  }

  close(): void {
    this.#socket.close();
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as Message;
    const { id, method, params } = message;
    if (method === 'NodeWorker.attachedToWorker') this.workers.push(params?.sessionId ?? '');
    else if (method === 'NodeWorker.receivedMessageFromWorker') this.#receive(params?.message ?? '');
    else if (id !== undefined) this.#waiting.get(id)?.(message);
  }
}

async function inspectorUrl(): Promise<string> {
  const endMs = performance.now() + openingMs;
  do {
    try {
      const [target] = (await (await fetch(inspector)).json()) as { webSocketDebuggerUrl: string }[];
      if (target !== undefined) return target.webSocketDebuggerUrl;
    } catch {
      // Not listening yet.
    }
    await wait(pollMs);
  } while (performance.now() < endMs);
  throw new Error('The inspector of the server does not answer on port 9229.');
}
