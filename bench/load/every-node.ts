import type { RunningServer } from '../servers/subject.ts';

/** Least share of a node, relative to an even spread of the answers. */
const leastShare = 0.25;

async function answersOf(server: RunningServer): Promise<number> {
  const counts = (await server.answersByStatus?.()) ?? new Map<number, number>();
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/**
 * Puts a load on a server, and asks each of its nodes how much of it came there.
 * @throws Error when one had less than its share.
 */
export async function onEveryNode<T>({ nodes = [] }: RunningServer, load: () => Promise<T>): Promise<T> {
  const before = await Promise.all(nodes.map(answersOf));
  const done = await load();
  const after = await Promise.all(nodes.map(answersOf));
  const answered = after.map((count, node) => count - (before[node] ?? 0));
  const even = answered.reduce((sum, count) => sum + count, 0) / nodes.length;
  if (answered.some((count) => !(count > even * leastShare))) {
    throw new Error(`the nodes answered ${answered.join(' and ')} requests, which is not alike`);
  }
  return done;
}
