import { readFileSync } from 'node:fs';
import { type ConnectionOptions, connect, createSecureContext } from 'node:tls';
import { EventStreamReader } from '../../src/device/simulator/connection/event-stream-reader.ts';
import { dueTimesIn, nowMicroseconds } from './due-time.ts';

/** A process that holds event streams, each on a bare TLS socket, and notes when mail is announced. */
export interface Hold {
  url: string;
  certFile: string;
  /** Prebuilt, one for each stream. */
  requests: readonly string[];
}

/** Orders to a holder, in this order: open streams; report what came of them. */
export type Order = { type: 'hold'; hold: Hold } | { type: 'report' };

/** Answers of a holder. */
export type Word =
  | { type: 'open' }
  | { type: 'report'; latenciesMicroseconds: number[]; closed: number }
  | { type: 'failed'; reason: string };

/** Handshakes under way at once. */
const openingAtOnce = 32;

let latenciesMicroseconds: number[] = [];
let closed = 0;

function say(word: Word): void {
  process.send?.(word);
}

/** Opens one stream; settles with its first event. */
function openStream(request: string, options: ConnectionOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(options, () => socket.write(request, 'latin1'));
    const reader = new EventStreamReader();
    let isOpen = false;
    socket.setEncoding('latin1').on('data', (text: string) => {
      const now = nowMicroseconds();
      const events = reader.take(text);
      for (const due of dueTimesIn(events)) latenciesMicroseconds.push(now - due);
      if (isOpen || !events.includes('event: connected')) return;
      isOpen = true;
      resolve();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      closed += 1;
      reject(new Error(`it was closed: ${reader.rest.slice(0, 200)}`));
    });
  });
}

async function hold({ url, certFile, requests }: Hold): Promise<void> {
  const { hostname: host, port } = new URL(url);
  const secureContext = createSecureContext({ ca: readFileSync(certFile) });
  const options = { host, port: Number(port), secureContext };
  let next = 0;
  const openSome = async (): Promise<void> => {
    for (let index = next++; index < requests.length; index = next++) {
      await openStream(requests[index] ?? '', options);
    }
  };
  await Promise.all(Array.from({ length: openingAtOnce }, openSome));
}

process.on('message', (order: Order) => {
  if (order.type === 'report') {
    say({ type: 'report', latenciesMicroseconds, closed });
    latenciesMicroseconds = [];
  } else {
    hold(order.hold).then(
      () => say({ type: 'open' }),
      (error: Error) => say({ type: 'failed', reason: error.message }),
    );
  }
});
process.on('disconnect', () => process.exit());
