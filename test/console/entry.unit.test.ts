/** Size of the console's first page, as it is built. */

import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';

const folder = new URL('../../dist/console/', import.meta.url);

it('what a page loads first is at most 45 KB of JavaScript and 12 KB of CSS, gzip', () => {
  const page = readFileSync(new URL('index.html', folder), 'utf8');
  const files = [...page.matchAll(/assets\/[\w.-]+\.(?:js|css)/g)].map(([file]) => file);
  const bytesOf = (ending: string): number =>
    [...new Set(files)]
      .filter((file) => file.endsWith(ending))
      .reduce((sum, file) => sum + gzipSync(readFileSync(new URL(file, folder))).length, 0);
  expect(files.length).toBeGreaterThan(2);
  expect(bytesOf('.js')).toBeLessThan(45_000);
  expect(bytesOf('.css')).toBeLessThan(12_000);
});
