/** The benchmarks that documents have a command for. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { benchmarks } from '../../bench/benchmarks.ts';

const root = new URL('../..', import.meta.url).pathname;

it('each benchmark that README and docs have a command for is there', () => {
  const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path));
  const names = ['README.md', ...pages].flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/npm run bench -- ((?:[a-z][a-z-]*\b ?)+)/g)].flatMap(
      ([, words = '']) => words.trim().split(' '),
    ),
  );
  expect(names.length).toBeGreaterThan(8);
  const known = new Set(benchmarks.map(({ name }) => name));
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});
