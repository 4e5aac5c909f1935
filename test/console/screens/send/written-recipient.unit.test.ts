import { expect, it } from 'vitest';
import { recipientOf } from '../../../../src/console/screens/send/written-recipient.ts';

it('a mail is written to an id, or to all that fit the filters of the query bar', () => {
  expect(recipientOf(' PUMP07HALL ')).toEqual({ recipient: { deviceId: 'PUMP07HALL' }, problem: undefined });
  const canary = { filter: { tag: ['canary'] }, flags: ['--tag', 'canary'], text: 'tag:canary' };
  expect(recipientOf('tag:canary ')).toEqual({ recipient: canary, problem: undefined });
  expect(recipientOf('All devices ').recipient).toMatchObject({ filter: {}, text: '' });
  expect(recipientOf('').problem).toContain('To whom?');
  expect(recipientOf('Lamp').problem).toContain('To whom?');
  // Nobody, rather than all, until the filter is written.
  expect(recipientOf('tag:')).toMatchObject({ recipient: { deviceId: 'tag:' }, problem: expect.any(String) });
});
