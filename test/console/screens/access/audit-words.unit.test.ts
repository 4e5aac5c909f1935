/** Entries of the audit log in words. */

import { expect, it } from 'vitest';
import type { AuditEntryDocument } from '../../../../src/contract/access/audit.ts';
import { auditWords } from '../../../../src/contract/columns/audit-words.ts';

function wordsOf(
  method: string,
  path: string,
  about: AuditEntryDocument['about'] = {},
  status: number | null = 200,
): string | undefined {
  const entry = { method, route: `/admin/v1${path}`, about, status } as AuditEntryDocument;
  return auditWords(entry)?.sentence;
}

const fleet = '/fleets/:fleet_id';

it.each([
  ['POST', '/tokens', { name: 'Anna', scopes: 'read,mail' }, 201, 'made the token Anna (read,mail)'],
  ['DELETE', '/tokens/:token_id', { token_id: 'x', name: 'Anna' }, 204, 'revoked the token Anna'],
  ['DELETE', '/tokens/:token_id', { token_id: 'x' }, 404, 'tried to revoke the token'],
  ['POST', `${fleet}/devices:change`, { changed: 12 }, 200, 'changed many devices (12)'],
  [
    'POST',
    `${fleet}/devices/:device_id/mail/:name`,
    { device_id: 'PUMP000001', name: 'water' },
    202,
    'sent water to PUMP000001',
  ],
  ['PUT', `${fleet}/actions/:name`, { name: 'water' }, null, 'began to deploy the action water'],
  ['POST', '/console-sessions', {}, 201, 'logged in to the console'],
  ['DELETE', `${fleet}/broadcasts/:broadcast_id`, {}, 200, 'deleted a broadcast'],
] as const)('%s %s of %o, %s: %s', (method, path, about, status, sentence) => {
  expect(wordsOf(method, path, about, status)).toBe(sentence);
});

it('what changes nothing has no words but its request', () => {
  expect(wordsOf('GET', '/tokens')).toBeUndefined();
});
