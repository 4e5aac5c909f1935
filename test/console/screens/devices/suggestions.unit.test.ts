import { expect, it } from 'vitest';
import { suggestionsFor } from '../../../../src/console/screens/devices/suggestions.ts';

const items = [
  { tag: 'hall', devices: 12 },
  { tag: 'Hall of fame', devices: 2 },
  { tag: 'door', devices: 1 },
];
const tags = { items, is_all: true };
const textsFor = (text: string) => suggestionsFor(text, tags).map((one) => one.text);

it('the word that is typed is completed to filters, and then to their values, the words before it kept', () => {
  expect(textsFor('')).toEqual([]);
  expect(textsFor('s')).toEqual(['state:', 'silent:', 'seen<', 'seen>']);
  expect(textsFor('Lamp 4 st')).toEqual(['Lamp 4 state:']);
  expect(textsFor('tag:door state:')).toEqual(
    ['connected', 'active', 'offline', 'disabled'].map((state) => `tag:door state:${state}`),
  );
  expect(textsFor('refused:w')).toEqual(['refused:wrong_secret']);
  expect(textsFor('silent:1')).toEqual(['silent:1h', 'silent:1d']);
});

it('tags of the fleet are completed in any letter case, in quotes if they have spaces', () => {
  expect(textsFor('state:offline tag:')).toHaveLength(3);
  expect(textsFor('tag:ha')).toEqual(['tag:hall', 'tag:"Hall of fame"']);
  expect(textsFor('tag:"Hall o')).toEqual(['tag:"Hall of fame"']);
  const note = (is_all: boolean) => suggestionsFor('tag:hal', { items, is_all })[0]?.note;
  expect([note(true), note(false)]).toEqual(['12', '12 or more']);
});

it('what is complete, and a name, are completed no further', () => {
  for (const text of ['state:offline', 'tag:door', 'Lamp', 'seen<1h', 'size:'])
    expect(textsFor(text)).toEqual([]);
});
