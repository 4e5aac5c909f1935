import { once } from 'node:events';
import { WebSocket } from 'undici';

interface Worker {
  sessionId: string;
  workerInfo: { workerId: string; url: string };
}

interface Message {
  id?: number;
  method?: string;
  params?: Partial<Worker> & { message?: string };
}

/** A conversation with the inspector of a process: with its main thread and, through that, its workers. */
export class InspectorSession implements Disposable {
  /** Threads that it can reach, in no order; known once NodeWorker is enabled. */
  readonly workers: Worker[] = [];
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Message) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#receive(String(data)));
  }

  static async open(url: string): Promise<InspectorSession> {
    const socket = new WebSocket(url);
    await once(socket, 'open');
    return new InspectorSession(socket);
  }

  ask(method: string, params: object, worker?: Worker): Promise<Message> {
    return new Promise((resolve) => {
      this.#lastId += 1;
      this.#waiting.set(this.#lastId, resolve);
      const message = { id: this.#lastId, method, params };
      if (worker === undefined) this.#send(message);
      else {
        const wrapped = { sessionId: worker.sessionId, message: JSON.stringify(message) };
        this.#send({ id: 0, method: 'NodeWorker.sendMessageToWorker', params: wrapped });
      }
    });
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as Message;
    const { id, method, params } = message;
    if (method === 'NodeWorker.attachedToWorker') this.workers.push(params as Worker);
    else if (method === 'NodeWorker.receivedMessageFromWorker') this.#receive(params?.message ?? '');
    else if (id !== undefined) this.#waiting.get(id)?.(message);
  }
}
