/** `package-lock.json`: platforms, registries and digests. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface LockEntry {
  version: string;
  resolved?: string;
  integrity?: string;
  optionalDependencies?: Record<string, string>;
}

const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
  packages: Record<string, LockEntry>;
};

it('the lock file has every platform, whichever machine it was made on', () => {
  for (const [path, { optionalDependencies = {} }] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const entry = lock.packages[`${path}/node_modules/${name}`] ?? lock.packages[`node_modules/${name}`];
      expect(entry, `${name} of ${path}`).toBeDefined();
      if (/^\d/.test(version)) expect(entry?.version, `${name} of ${path}`).toBe(version);
    }
  }
});

it('the lock file names no host of a registry', () => {
  expect(Object.values(lock.packages).flatMap(({ resolved }) => resolved ?? [])).toEqual([]);
});

it('the lock file has a digest of every package', () => {
  const without = Object.entries(lock.packages).filter(([path, { integrity }]) => path !== '' && !integrity);
  expect(without.map(([path]) => path)).toEqual([]);
});
