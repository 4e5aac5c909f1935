import { expect } from 'vitest';

/** Why the server says that it is not ready, over a connection of its own; empty when it says that it is. */
export async function readiness(adminUrl: string): Promise<string[]> {
  const response = await fetch(`${adminUrl}/readyz`, { headers: { connection: 'close' } });
  const body = (await response.json()) as { reasons?: { reason: string }[] };
  expect(response.status).toBe(body.reasons === undefined ? 200 : 503);
  return (body.reasons ?? []).map(({ reason }) => reason);
}

/** Asks again and again, also while nobody listens yet or any more, until `isOver`. Answers all that was said, in order. */
export async function watchReadiness(adminUrl: string, isOver: () => boolean): Promise<string[]> {
  const seen: string[] = [];
  while (!isOver()) {
    const said = await readiness(adminUrl).then(
      (reasons) => reasons.join() || 'ready',
      () => 'nothing',
    );
    if (seen.at(-1) !== said) seen.push(said);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return seen;
}
