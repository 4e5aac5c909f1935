import { adminErrors, claimErrors, deviceErrors } from '../../src/core/errors.ts';
import { code, type Lines, page, table } from './markdown.ts';

function errorTable(errors: Readonly<Record<string, { status: number; msg: string }>>): Lines {
  const rows = Object.entries(errors).map(([name, { status, msg }]) => [code(name), String(status), msg]);
  return table(['Code', 'Status', 'What it says'], rows);
}

/** The error catalogue. */
export function errorsPage(): string {
  return page('Errors', 'whoever reads an answer that is not 2xx: every code with its status.', [
    'The body is `{"error": CODE, "msg": TEXT}`. Errors of credentials also have a `detail`, those of a document `errors`,',
    'a list of `{"path", "msg"}`. `msg` may say more than the sentence here; where a limit was hit it names the',
    'configuration key, and [troubleshooting](../run/troubleshooting.md) says what to do. 429 and 503 carry `Retry-After`.',
    '',
    '## Both APIs',
    '',
    ...errorTable(deviceErrors),
    '`strictStatuses` makes the device API answer 400 for 409, 413 and 415, 401 for 403, and 500 for 429 and 503.',
    '',
    '## Claiming',
    '',
    ...errorTable(claimErrors),
    '## Admin API',
    '',
    ...errorTable(adminErrors),
  ]);
}
