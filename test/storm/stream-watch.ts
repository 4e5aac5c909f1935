import { Agent, request } from 'undici';
import { sleep } from '../../src/core/async.ts';
import { headerOf } from '../../src/device/simulator/connection/client-connection.ts';
import type { TestDevice } from '../harness/devices/device.ts';
import type { Requester } from './client.ts';
import type { Findings } from './findings.ts';
import type { StormNode } from './storm-node.ts';

const sendEachMs = 400;
const reconnectMs = 100;
/** Silence after which a device notices that a connection says nothing any more. */
const silenceMsMax = 20_000;

interface Watched {
  sentMs: number;
  answeredMs: number;
  isCalm: boolean;
}

/**
 * A device that keeps a stream open on one node while its mail comes in over the other; it changes nodes when its
 * stream ends. It fetches nothing until it is told to: so mail that is not announced stays.
 */
export class StreamWatch {
  /** Times from sending, and from its answer, to the announcement, while nothing was broken. */
  readonly sentToSeenMs: number[] = [];
  readonly answeredToSeenMs: number[] = [];
  readonly #device: TestDevice;
  readonly #nodes: readonly StormNode[];
  readonly #client: Requester;
  readonly #findings: Findings;
  readonly #waiting = new Map<string, Watched>();
  readonly #seenMs = new Map<string, number>();
  /** Those whose acknowledgement was answered. */
  readonly #acknowledged = new Set<string>();
  /**
   * Ids of mails that have left the mailbox, also where the acknowledgement was done and not answered: another mail is
   * the head.
   */
  readonly #gone = new Set<string>();
  readonly #running: Promise<void>[];
  #stream = 0;
  #isSending = false;
  #isCalm = true;
  #isOver = false;
  #cut: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  #isAnnounced = false;

  constructor(
    device: TestDevice,
    first: number,
    nodes: readonly StormNode[],
    client: Requester,
    findings: Findings,
  ) {
    this.#device = device;
    this.#stream = first;
    this.#nodes = nodes;
    this.#client = client;
    this.#findings = findings;
    this.#running = [this.#listen(), this.#send()];
  }

  get isDone(): boolean {
    return this.#waiting.size === 0 && this.#draining === undefined;
  }

  get left(): string[] {
    return [...this.#waiting.keys()];
  }

  go(isSending: boolean): void {
    this.#isSending = isSending;
  }

  /** Notes whether all is calm: an announcement while something is broken says nothing of how fast it is. */
  calm(isCalm: boolean): void {
    this.#isCalm = isCalm;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#cut?.();
    await Promise.all(this.#running);
    await this.#draining;
  }

  async #send(): Promise<void> {
    while (!this.#isOver) {
      await sleep(sendEachMs);
      // Over a node that does not hold the stream, where there is one.
      const others = this.#nodes.filter((_, index) => index !== this.#stream);
      const client = others.find((node) => node.client !== undefined)?.client;
      if (!this.#isSending || client === undefined) continue;
      const [sentMs, isCalm] = [performance.now(), this.#isCalm];
      const path = `${this.#device.adminPath}/mail/watched`;
      const answer = await client.admin<{ mail_id: string }>('POST', path, '{}').catch(() => undefined);
      if (answer?.status !== 201) continue;
      const { mail_id: id } = answer.body;
      this.#findings.count('mail: queued for a stream, answered 201');
      const watched = { sentMs, answeredMs: performance.now(), isCalm };
      const seenMs = this.#seenMs.get(id);
      if (seenMs !== undefined) this.#note(watched, seenMs);
      if (!this.#gone.has(id)) this.#waiting.set(id, watched);
    }
  }

  async #listen(): Promise<void> {
    while (!this.#isOver) {
      const client = this.#nodes[this.#stream]?.client;
      if (client !== undefined) {
        await this.#read(client.server).catch(() => {});
        if (this.#isOver) return;
        this.#findings.count('streams that ended, and were opened on another node');
      }
      await sleep(reconnectMs);
      this.#stream = (this.#stream + 1) % this.#nodes.length;
    }
  }

  /** Reads the stream until it ends. */
  async #read({ url, ca }: { url: string; ca: string }): Promise<void> {
    const agent = new Agent({ connect: { ca }, bodyTimeout: silenceMsMax, headersTimeout: silenceMsMax });
    this.#cut = () => void agent.destroy();
    try {
      const headers = { ...this.#device.credentials, accept: 'text/event-stream' };
      const { statusCode, body } = await request(`${url}/v1/events`, { headers, dispatcher: agent });
      if (statusCode !== 200) {
        this.#findings.expect(statusCode === 503, () => `a stream was answered ${statusCode}`);
        return;
      }
      let text = '';
      for await (const chunk of body.setEncoding('utf8')) {
        text += chunk;
        const events = text.split('\n\n');
        text = events.pop() ?? '';
        for (const event of events) this.#hear(event);
      }
    } finally {
      await agent.destroy();
    }
  }

  #hear(event: string): void {
    if (!event.includes('event: new_mail')) return;
    const { id } = JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? '{}') as { id: string };
    const nowMs = performance.now();
    this.#seenMs.set(id, nowMs);
    const watched = this.#waiting.get(id);
    if (watched !== undefined) this.#note(watched, nowMs);
    this.#isAnnounced = true;
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
    });
  }

  #note({ sentMs, answeredMs, isCalm }: Watched, seenMs: number): void {
    if (!isCalm || !this.#isCalm) return;
    this.sentToSeenMs.push(seenMs - sentMs);
    this.answeredToSeenMs.push(Math.max(0, seenMs - answeredMs));
  }

  #forget(id: string): void {
    this.#gone.add(id);
    this.#waiting.delete(id);
  }

  /** Head by head, as devices do. */
  async #drain(): Promise<void> {
    let inDoubt: string | undefined;
    while (this.#isAnnounced && !this.#isOver) {
      this.#isAnnounced = false;
      for (;;) {
        const next = await this.#client.device(this.#device, 'HEAD', '/v1/mailbox/next');
        const id = headerOf(next.text, 'x-mail-id');
        const isTold = next.status === 200 || next.status === 204;
        if (isTold && inDoubt !== undefined && inDoubt !== id) this.#forget(inDoubt);
        if (isTold) inDoubt = undefined;
        if (next.status === 204) break;
        if (next.status !== 200 || this.#isOver) {
          this.#isAnnounced = true;
          break;
        }
        this.#findings.expect(
          !this.#acknowledged.has(id),
          () => `the mail ${id} was acknowledged and is there again`,
        );
        const { status } = await this.#client.device(this.#device, 'PUT', `/v1/mailbox/ack/${id}`);
        if (status !== 200) {
          this.#findings.expect(
            status === 0 || status === 503,
            () => `the head ${id} was answered ${status}`,
          );
          inDoubt = id;
          continue;
        }
        this.#acknowledged.add(id);
        this.#forget(id);
      }
    }
  }
}
