import { expect, it } from 'vitest';
import {
  asIdPrefix,
  isPlainDeviceId,
  parseDeviceQuery,
} from '../../../../src/console/screens/devices/device-query.ts';
import { spellingsOf } from '../../../../src/console/screens/devices/spellings.ts';
import { exactSpanText } from '../../../../src/console/server/clock.ts';

it.each([
  ['', {}, []],
  ['Lamp', { name_prefix: 'Lamp' }, ['--name-prefix', 'Lamp']],
  ['Lamp 4 tag:hall', { name_prefix: 'Lamp 4', tag: ['hall'] }, undefined],
  ['name:"Lamp 4" tag:hall tag:"floor 2"', { name_prefix: 'Lamp 4', tag: ['hall', 'floor 2'] }, undefined],
  ['state:offline', { state: 'offline' }, ['--state', 'offline']],
  ['state:disabled', { enabled: false }, ['--disabled']],
  ['id:PUMP enabled:yes', { id_prefix: 'PUMP', enabled: true }, ['--id-prefix', 'PUMP', '--enabled']],
])('%s is the filter %o', (text, filter, flags) => {
  const query = parseDeviceQuery(text);
  expect(query).toMatchObject({ filter, problems: [] });
  expect(Object.keys(query.filter).sort()).toEqual(Object.keys(filter).sort());
  if (flags !== undefined) expect(query.flags).toEqual(flags);
});

it('a span of time is a time of the server for the API, and a span for the command', () => {
  const { filter, flags } = parseDeviceQuery('seen<90min seen>30s');
  const passedMs = Date.now() - Date.parse(String(filter.seen_after));
  expect(Math.abs(passedMs - 5_400_000)).toBeLessThan(5_000);
  expect(filter.seen_before).toBeDefined();
  expect(flags).toEqual(['--seen-after', '90m', '--seen-before', '30s']);
});

it('a mailbox that waits is found by the span that the first page links to', () => {
  const { filter, flags, problems } = parseDeviceQuery(`waiting>${exactSpanText(600)}`);
  expect(Math.abs(Date.now() - Date.parse(String(filter.waiting_before)) - 600_000)).toBeLessThan(5_000);
  expect([flags, problems]).toEqual([['--waiting-before', '10m'], []]);
  expect([1, 90, 7_200, 31_536_000].map(exactSpanText)).toEqual(['1s', '90s', '2h', '365d']);
  expect(parseDeviceQuery('waiting<10m').problems).toHaveLength(1);
});

it('what fell silent is found by a span, and what is refused by the reason or for any', () => {
  const { filter, flags, problems } = parseDeviceQuery('silent:1h refused:');
  expect(Math.abs(Date.now() - Date.parse(String(filter.silent_after)) - 3_600_000)).toBeLessThan(5_000);
  expect(filter.refused).toBe('any');
  expect([flags, problems]).toEqual([['--silent-after', '1h', '--refused', 'any'], []]);
  expect(parseDeviceQuery('refused:wrong_secret').filter).toEqual({ refused: 'wrong_secret' });
  expect(parseDeviceQuery('refused:any').filter).toEqual({ refused: 'any' });
});

it.each([
  'refused:never',
  'silent:soon',
  'silent>1h',
  'size:4',
  'state:asleep',
  'seen<soon',
  'tag:',
  'id:-',
  'Lamp name:4',
  'enabled:maybe',
])('%s is answered with a sentence rather than dropped', (text) => {
  expect(parseDeviceQuery(text).problems).toHaveLength(1);
});

it('ten letters or digits are a device, which is opened', () => {
  expect(isPlainDeviceId(' PUMP07HALL ')).toBe(true);
  expect(isPlainDeviceId('PUMP07')).toBe(false);
});

it('letters that may be a name as well as an id are looked for as both, an id in capitals too', () => {
  expect(isPlainDeviceId('greenhouse')).toBe(false);
  expect(['greenhouse', ' pump07 ', 'id:pump', 'Lamp 4', 'tag:hall', 'greenhouses'].map(asIdPrefix)).toEqual([
    'greenhouse',
    'pump07',
    'pump',
    undefined,
    undefined,
    undefined,
  ]);
  expect(spellingsOf('pump07')).toEqual(['pump07', 'PUMP07']);
  expect(spellingsOf('PUMP07')).toEqual(['PUMP07']);
});
