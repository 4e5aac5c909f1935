import { once } from 'node:events';
import { WebSocket } from 'undici';

interface Message {
  id?: number;
  method?: string;
  params?: { sessionId?: string; message?: string };
}

/**
 * Has a Node process collect the garbage of all its threads, through its inspector: what remains resident
 * then is in use, where the size of a heap at any other moment is chance.
 */
export async function collectGarbage(inspectorUrl: string): Promise<void> {
  const session = await Session.open(inspectorUrl);
  try {
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

  static async open(url: string): Promise<Session> {
    const socket = new WebSocket(url);
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
