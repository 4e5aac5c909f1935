import { expect, it } from 'vitest';
import { Lifecycle } from '../../src/server/lifecycle.ts';

const never = new Promise<void>(() => {});

/** Settles with the part that a stop reports as late. */
function lateOf(lifecycle: Lifecycle): Promise<string | undefined> {
  return new Promise((onLate) => {
    // Its timer keeps no process alive, so that this one must.
    const alive = setInterval(() => {}, 1_000);
    void lifecycle.stop({
      secondsMax: 0.05,
      onLate: (part) => {
        clearInterval(alive);
        onLate(part);
      },
    });
  });
}

it('a part that does not stop is named, and those that it may use are left running', async () => {
  const lifecycle = new Lifecycle();
  const stopped: string[] = [];
  lifecycle.start('shards', () => void stopped.push('shards'));
  lifecycle.start('admin API', () => never);
  lifecycle.start('work', () => void stopped.push('work'));
  expect(await lateOf(lifecycle)).toBe('admin API');
  expect(stopped).toEqual(['work']);
});

it('what keeps a process alive after its parts have stopped is late, too', async () => {
  const lifecycle = new Lifecycle();
  lifecycle.start('shards', () => {});
  expect(await lateOf(lifecycle)).toBeUndefined();
});
