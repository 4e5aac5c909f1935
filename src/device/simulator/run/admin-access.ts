import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { ListDocument } from '../../../contract/document.ts';
import type {
  AnswerAt,
  BodyAt,
  ItemAt,
  MethodOf,
  Path,
  QueryAt,
  Template,
} from '../../../contract/routes/path.ts';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';

interface RequestParts<M extends MethodOf<T>, T extends Template> {
  query?: QueryAt<M, T>;
  json?: BodyAt<M, T>;
  headers?: Readonly<Record<string, string>> | undefined;
}

interface AdminRequest {
  json?: unknown;
  headers?: Readonly<Record<string, string>> | undefined;
}

/** The calls that the simulator needs of a client of the admin API. */
export interface AdminAccess {
  readonly url: string;
  request<M extends MethodOf<T>, T extends Template>(
    method: M,
    path: Path<T>,
    parts?: RequestParts<M, T>,
  ): Promise<AnswerAt<M, T>>;
  pages<T extends Template>(path: Path<T>): AsyncIterable<ListDocument<ItemAt<T>>>;
  open(method: string, path: string, parts?: AdminRequest): Promise<Response>;
  exchange(path: string, contentType: string, body: Readable): Promise<IncomingMessage>;
}

const retryMs = 250;

/**
 * Asks one server after another until one answers: servers of the run are killed under it. Only for what may be done
 * twice, or has an idempotency key.
 */
export class PatientAdmin {
  readonly #clients: () => readonly AdminAccess[];
  readonly #patienceMs: number;
  #turn = 0;

  constructor(clients: () => readonly AdminAccess[], patienceMs: number) {
    this.#clients = clients;
    this.#patienceMs = patienceMs;
  }

  /** @throws OperatorError what the server refuses; what stopped the last try when patience ends. */
  async request<M extends MethodOf<T>, T extends Template>(
    method: M,
    path: Path<T>,
    parts: RequestParts<M, T> = {},
    key?: string,
  ): Promise<AnswerAt<M, T>> {
    const headers = key === undefined ? undefined : { 'Idempotency-Key': key };
    const endMs = performance.now() + this.#patienceMs;
    for (;;) {
      const clients = this.#clients();
      const client = clients[this.#turn % clients.length];
      try {
        if (client === undefined) throw new OperatorError('No server of the run is up.');
        return await client.request(method, path, { ...parts, headers });
      } catch (error) {
        if (isRefusal(error) || performance.now() > endMs) throw error;
        this.#turn += 1;
        await sleep(retryMs);
      }
    }
  }
}

/** Tells whether a server has said no, rather than nothing or "later". */
export function isRefusal(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && code !== 'unavailable' && code !== 'rate_limited';
}
