import { address, boolean, integer, reloadable, text, type ValuesOf } from '../core/config/config-key.ts';
import type { ActionConfig } from '../features/actions/config.ts';
import type { BroadcastConfig } from '../features/broadcasts/config.ts';
import type { ConsumerConfig } from '../features/consumers/config.ts';

/** Who reaches the admin API, and what its clients may take. */
export const adminKeys = {
  admin: address(
    '127.0.0.1:8444',
    'Address of the admin API, plain HTTP: loopback only. Port 0 takes any free port.',
  ),
  probe: address(
    '',
    'Another address, of any interface, for `/healthz`, `/readyz` and `/metrics` alone, plain HTTP. Empty: none.',
  ),
  adminHosts: reloadable(
    text(
      '',
      'Host names, separated by commas, under which the admin API may be asked besides those of loopback and its own address: a proxy passes one on. A request for another is answered 403.',
    ),
  ),
  adminConnectionsMax: integer(
    1_024,
    16,
    100_000,
    'Open connections of the admin API, and as many of `probe`. At the limit idle ones are closed; if none is, the new one. Raise it for more clients that wait for records.',
  ),
  adminUnreadBytesMax: integer(
    268_435_456,
    1_048_576,
    17_179_869_184,
    'Bytes of answers of the admin API that wait for clients that do not read; with more, the oldest is cut off. Lower it where memory is short.',
  ),
  bootstrapToken: reloadable(
    boolean(
      true,
      'Whether the token in DATA/admin.json may do everything; off, it may nothing. Turn it off once there are tokens of your own.',
    ),
  ),
  tokenChangesPerSecondMax: reloadable(
    integer(
      100,
      0,
      100_000,
      'Changes by one token of the admin API, mail not counted; beyond ten times as many at once, 429; 0 for no limit. Raise it for programs that create devices one by one.',
    ),
  ),
  exportsMax: integer(
    16,
    1,
    1_000,
    'Exports of devices and of the audit log under way, shared by fleets: one alone has half; one more is answered 503. Raise it where memory and disk allow.',
  ),
};

/** All that routes read: of what they are about too. */
export type AdminApiConfig = ValuesOf<typeof adminKeys> &
  ActionConfig &
  BroadcastConfig &
  ConsumerConfig & { readonly bodyTimeoutSeconds: number };
