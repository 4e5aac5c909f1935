/** Programs of `clients/quickstart`, as documents have them. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

it.each([
  ['pump.mjs', 'docs/devices/typescript.md'],
  ['pump.py', 'clients/python/README.md'],
])('the twelve lines of clients/quickstart/%s are in the quickstart and in %s', (file, page) => {
  const lines = read(`clients/quickstart/${file}`);
  expect(lines.trimEnd().split('\n')).toHaveLength(12);
  for (const path of ['docs/start/quickstart.md', page]) expect(read(path)).toContain(`\n${lines}\`\`\``);
});
