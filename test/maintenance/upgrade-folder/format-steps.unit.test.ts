import { expect, it } from 'vitest';
import { formatSteps } from '../../../src/maintenance/upgrade-folder/format-steps.ts';
import { formatVersion } from '../../../src/storage/lmdb/environment/manifest.ts';

it('there is a step from every earlier format, so that each folder finds its way', () => {
  const earlier = Array.from({ length: formatVersion - 1 }, (_, index) => index + 1);
  expect([...formatSteps.keys()]).toEqual(earlier);
  for (const step of formatSteps.values()) {
    const changed = step.map(({ environment, table }) => `${environment} ${table}`);
    expect(new Set(changed).size).toBe(changed.length);
  }
});
