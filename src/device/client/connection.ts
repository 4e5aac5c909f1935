import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { type Answer, payloadBytesMax } from './answer.ts';
import { openTrusted, type Trust } from './trust.ts';

const answerSecondsMax = 30;
const streamSilenceSecondsMax = 60;
/** The server closes connections that idle for 8 s (D22). */
const idleSecondsMax = 7;

/** Address of the server, and how it proves its identity. */
export interface ServerAddress {
  host: string;
  port: number;
  trust: Trust;
}

/** Reads the URL of a server. */
export function parseServerUrl(text: string): { host: string; port: number } {
  const url = /^https:\/\/[^/]/i.test(text) ? new URL(text) : undefined;
  if (url === undefined) throw new Error('The URL of a server is https://HOST or https://HOST:PORT.');
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 443) };
}

class TrustingAgent extends HttpsAgent {
  readonly #address: ServerAddress;

  constructor(address: ServerAddress, options: AgentOptions) {
    super(options);
    this.#address = address;
  }

  override createConnection(_: unknown, callback?: (error: Error | null, socket: Duplex) => void): undefined {
    const { host, port, trust } = this.#address;
    openTrusted(host, port, trust).then(
      (socket) => callback?.(null, socket),
      // The type knows of no error without a socket; Node does.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
  }
}

/** One connection to the server at a time, which is kept while it is used. Requests on it wait for each other. */
export class Connection {
  readonly #address: ServerAddress;
  readonly #agent: TrustingAgent;

  constructor(address: ServerAddress) {
    this.#address = address;
    this.#agent = new TrustingAgent(address, {
      keepAlive: true,
      maxSockets: 1,
      timeout: idleSecondsMax * 1_000,
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #request(method: string, path: string, headers: OutgoingHttpHeaders): ClientRequest {
    const { host, port } = this.#address;
    const options = { host, port, method, path, headers, agent: this.#agent };
    return httpsRequest(options);
  }

  /** Rejects if there is no whole answer. */
  async request(method: string, path: string, headers: OutgoingHttpHeaders, body?: Buffer): Promise<Answer> {
    const request = this.#request(method, path, headers);
    try {
      return await answerTo(request, body);
    } catch (error) {
      // The server may have closed it meanwhile. Everything sent can be repeated.
      if (request.reusedSocket) return answerTo(this.#request(method, path, headers), body);
      throw error;
    }
  }

  /** Opens a stream: an answer whose body has no end. It is destroyed when nothing comes for a minute. */
  async stream(path: string, headers: OutgoingHttpHeaders): Promise<IncomingMessage> {
    const request = this.#request('GET', path, headers);
    request.setTimeout(streamSilenceSecondsMax * 1_000, () =>
      request.destroy(new Error(`nothing came for ${streamSilenceSecondsMax} s`)),
    );
    request.end();
    return responseTo(request);
  }
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('response', resolve);
    // Stays: a request may fail after its answer has begun.
    request.on('error', reject);
  });
}

/** Reads a body of bounded length. */
export async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > 2 * payloadBytesMax) throw new Error('the answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function answerTo(request: ClientRequest, body: Buffer | undefined): Promise<Answer> {
  request.setTimeout(answerSecondsMax * 1_000, () =>
    request.destroy(new Error(`no answer in ${answerSecondsMax} s`)),
  );
  request.end(body);
  const response = await responseTo(request);
  return { status: response.statusCode ?? 0, headers: response.headers, body: await bodyOf(response) };
}
