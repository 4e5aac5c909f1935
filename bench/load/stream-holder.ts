import { readFileSync } from 'node:fs';
import { Connections } from '../../src/device/simulator/connection/connections.ts';
import { addressOf } from '../../src/device/simulator/run/own-servers.ts';
import { dueTimesIn, nowMicroseconds } from './due-time.ts';

/** A process that holds event streams, each on a connection of the simulator, and notes when mail is announced. */
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

let latenciesMicroseconds: number[] = [];
let closed = 0;

function say(word: Word): void {
  process.send?.(word);
}

/** Opens them all; settles when each has had its first event. */
async function hold({ url, certFile, requests }: Hold): Promise<void> {
  const node = addressOf(url, readFileSync(certFile, 'utf8'));
  const connections = new Connections([node], { sharedMax: 0, waitingMax: 0 });
  const open = (request: string, number: number): Promise<void> =>
    new Promise((resolve, reject) => {
      connections.stream(number, request, {
        onEvents: (events) => {
          const now = nowMicroseconds();
          for (const due of dueTimesIn(events)) latenciesMicroseconds.push(now - due);
          if (events.includes('event: connected')) resolve();
        },
        onClosed: (_, status) => {
          closed += 1;
          reject(new Error(`it was closed with ${status ?? 'no answer'}`));
        },
      });
    });
  await Promise.all(requests.map(open));
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
