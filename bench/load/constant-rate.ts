import { setTimeout as wait } from 'node:timers/promises';
import { nowMicroseconds } from './due-time.ts';

const tickMs = 1;

/**
 * Sends at a constant rate, whether those before have been answered or not, for so long or until it is aborted; `send`
 * takes when it was due. Answers how many. @throws Error when one fails.
 */
export async function sendAtRate(
  {
    ratePerSecond,
    seconds,
    signal,
  }: { ratePerSecond: number; seconds: number; signal?: AbortSignal | undefined },
  send: (dueMicroseconds: number) => Promise<void>,
): Promise<number> {
  const total = ratePerSecond * seconds;
  const startMicroseconds = nowMicroseconds();
  const sent: Promise<void>[] = [];
  let failure: Error | undefined;
  while (sent.length < total && failure === undefined && !signal?.aborted) {
    const due = ((nowMicroseconds() - startMicroseconds) / 1e6) * ratePerSecond;
    while (sent.length < Math.min(due, total)) {
      const one = send(startMicroseconds + (sent.length / ratePerSecond) * 1e6);
      sent.push(
        one.catch((error: Error) => {
          failure ??= error;
        }),
      );
    }
    await wait(tickMs);
  }
  await Promise.all(sent);
  if (failure !== undefined) throw failure;
  return sent.length;
}
