import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { uwsBinaries } from '../../../src/device-api/uws/uws-binaries.ts';
import {
  checkBinaries,
  explainMissing,
  installedBinaries,
} from '../../../src/device-api/uws/uws-installation.ts';

const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  engines: { node: string };
  optionalDependencies: Record<string, string>;
};

it('each binary of the HTTP library is installed by the manifest, and is of a Node that this runs on', () => {
  const files = Object.keys(manifest.optionalDependencies).map((name) => `${name}/uws.node`);
  expect(uwsBinaries.map(({ file }) => file).sort()).toEqual(files.sort());
  const majors = [...manifest.engines.node.matchAll(/\^(\d+)/g)].map(([, major]) => Number(major));
  expect([...new Set(uwsBinaries.map(({ node }) => node))].sort()).toEqual(majors);
});

it('the binaries that are installed have the digests that are known', () => {
  expect(installedBinaries()).not.toEqual([]);
  expect(() => checkBinaries()).not.toThrow();
});

it.each([
  [
    'linux-arm64',
    '24.1.0',
    '2.41',
    /no uWebSockets\.js binary for linux-arm64 whose SHA-256 is known: install the/,
  ],
  [
    'linux-x64',
    '25.1.0',
    '2.41',
    /no uWebSockets\.js binary for Node 25\.1\.0: use Node 20, 22, 23, 24 or 26\.$/,
  ],
  [
    'linux-x64',
    '24.1.0',
    '2.36',
    /^Node 24 needs glibc 2\.38 or newer; this machine has 2\.36\. Node 20, 22 or 23 runs/,
  ],
  ['linux-x64', '20.19.0', '2.17', /^Node 20 needs glibc 2\.27 or newer; this machine has 2\.17\.$/],
  [
    'linux-x64',
    '22.12.0',
    undefined,
    /^glibc 2\.27 or newer is needed, and this machine has another C library/,
  ],
  [
    'linux-x64',
    '22.12.0',
    '2.36',
    /installed for another Node than 22\.12\.0, which this is: run npm ci again/,
  ],
])('on %s with Node %s and glibc %s it says what is missing', (platform, node, glibc, sentence) => {
  expect(explainMissing(platform, node, glibc)).toMatch(sentence);
});
