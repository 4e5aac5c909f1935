import { expect, it } from 'vitest';
import { suggestionFor } from '../../../src/core/config/suggestion.ts';

const options = ['--admin', '--data', '--fleet', '--json', '--listen'];

it.each([
  ['--jsno', '--json'],
  ['--fleeet', '--fleet'],
  ['--lsiten', '--listen'],
  ['--DATA', '--data'],
])('%s was meant to be %s', (name, meant) => {
  expect(suggestionFor(name, options)).toBe(meant);
});

it.each(['--limit', '--name', '--id', '-j', ''])('%j is none of these, mistyped', (name) => {
  expect(suggestionFor(name, options)).toBeUndefined();
});

it('what all variables begin with makes none alike', () => {
  const variables = ['FLEETPOST_DATA', 'FLEETPOST_SHARDS'];
  expect(suggestionFor('FLEETPOST_SHARDZ', variables)).toBe('FLEETPOST_SHARDS');
  expect(suggestionFor('FLEETPOST_NAME', variables)).toBeUndefined();
});
