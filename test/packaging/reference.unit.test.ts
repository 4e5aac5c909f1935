/** `docs/reference`, as `packaging/reference` writes it from the code. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { referencePages } from '../../packaging/reference/pages.ts';
import { configKeys } from '../../src/server/configuration/config.ts';

const folder = new URL('../../docs/reference', import.meta.url).pathname;

it('docs/reference is what the code says: else run "npm run docs"', async () => {
  const pages = await referencePages();
  const written = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.md'),
  );
  expect(written.sort()).toEqual([...pages.keys()].sort());
  const stale = [...pages].filter(([path, text]) => readFileSync(join(folder, path), 'utf8') !== text);
  expect(stale.map(([path]) => path)).toEqual([]);
});

it('each key of the configuration has one row', async () => {
  const text = (await referencePages()).get('configuration.md') ?? '';
  const rows = [...text.matchAll(/^\| `(\w+)` `FLEETPOST_/gm)].map(([, key]) => key);
  expect(rows.sort()).toEqual([...configKeys].sort());
});
