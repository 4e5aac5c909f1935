import { expect, it } from 'vitest';
import { LiveSettings } from '../../../../src/core/config/settings.ts';
import { ReadPace } from '../../../../src/features/actions/runs/read-pace.ts';

it('reads beyond the rate wait, in the rate, and those of another fleet do not', async () => {
  const settings = new LiveSettings({ actionReadsPerSecondMax: 100 });
  const pace = new ReadPace(settings);
  const startMs = performance.now();
  const ends: string[] = [];
  const take = async (fleet: string) => {
    await pace.take(fleet);
    ends.push(fleet);
  };
  const greedy = Array.from({ length: 150 }, () => take('GREEDY01'));
  await take('OTHER001');
  expect(ends.length).toBeLessThan(greedy.length);
  await Promise.all(greedy);
  // A hundred at once, and fifty at a hundred a second.
  expect(performance.now() - startMs).toBeGreaterThan(450);
});
