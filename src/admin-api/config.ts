import { address, boolean, type ConfigOf, integer, text } from '../core/config/config-key.ts';
import type { Settings } from '../core/config/settings.ts';
import type { DeclarationConfig } from '../declarations/config.ts';
import type { DomainConfig } from '../domain/config.ts';

/** Access to the admin API, and its limits. */
export const adminKeys = {
  admin: address(
    '127.0.0.1:8444',
    'Address of the admin API: plain HTTP on loopback, HTTPS on any other. Port 0 takes any free port.',
  ),
  adminTlsCertFile: text(
    '',
    'Certificate chain of the admin API, PEM; with it, HTTPS also on loopback. Empty: elsewhere than on loopback, that of the device API.',
  ),
  adminTlsKeyFile: text('', 'Private key of the certificate of the admin API, PEM.'),
  probe: address(
    '',
    'Address on any interface for `/healthz`, `/readyz` and `/metrics` only, plain HTTP. Empty: none.',
  ),
  adminHosts: text(
    '',
    'Allowed host names of the admin API, separated by commas, besides loopback, its own address and the names in its certificate: names below a wildcard, say, or those of a proxy that passes them on. Requests for others are answered 403.',
    { isReloadable: true },
  ),
  console: boolean(
    true,
    'Console. Serves the page for browsers at /console/ of the admin API. If off, it and its logins are not there.',
  ),
  adminConnectionsMax: integer(
    { default: 1_024, minimum: 16, maximum: 100_000 },
    'Maximum open connections of the admin API, and as many of `probe`. At the limit, idle ones are closed, or else the new one. Raise it for more clients that wait for records.',
  ),
  adminConnectionsPerSecondPerAddressMax: integer(
    { default: 200, minimum: 0, maximum: 1_000_000, isReloadable: true },
    'Maximum new connections per second and address of the admin API in HTTPS while the main thread is busy. One more is closed before its handshake. 0: no limit.',
  ),
  adminRequestsMax: integer(
    { default: 64, minimum: 8, maximum: 10_000 },
    'Maximum requests of the admin API under way, shared by fleets and by their tokens: one fleet alone gets half, one token alone a quarter. Others wait. Streams, and what waits for an action, a forwarder or records, have limits of their own.',
  ),
  adminQueueMax: integer(
    { default: 512, minimum: 8, maximum: 100_000 },
    'Maximum requests of the admin API that wait, shared likewise. One more is answered 503. Raise it for programs with more than a hundred connections.',
  ),
  adminQueueSeconds: integer(
    { default: 5, minimum: 1, maximum: 60 },
    'Maximum wait of a request of the admin API; then it is answered 503.',
  ),
  adminWaitsMax: integer(
    { default: 256, minimum: 1, maximum: 100_000 },
    'Maximum requests of the admin API that send a mail and wait until it is settled, shared likewise. One more is answered 503, and sends nothing.',
  ),
  adminUnreadBytesMax: integer(
    { default: 268_435_456, minimum: 1_048_576, maximum: 17_179_869_184 },
    'Memory for answers of the admin API that clients do not read. Beyond, the oldest is cut off. Lower it where memory is short.',
  ),
  bootstrapToken: boolean(
    true,
    'Bootstrap token. The token in DATA/admin.json may do everything, or nothing if this is off. Turn it off once you have created API tokens.',
    { isReloadable: true },
  ),
  tokenChangesPerSecondMax: integer(
    { default: 100, minimum: 0, maximum: 100_000, isReloadable: true },
    'Maximum changes per second by one token of the admin API, not counting mail. Bursts up to ten times that are allowed; beyond, 429. Raise it for programs that create devices one by one. 0: no limit.',
  ),
  exportsMax: integer(
    { default: 16, minimum: 1, maximum: 1_000 },
    'Maximum concurrent exports of devices and of the audit log, shared by fleets; one fleet alone gets half. One more is answered 503. Raise it where memory and disk allow.',
  ),
  importsMax: integer(
    { default: 16, minimum: 1, maximum: 1_000 },
    'Maximum concurrent imports of devices, shared by fleets; one fleet alone gets half. One more is answered 503.',
  ),
  importBadLinesMax: integer(
    { default: 1_000, minimum: 1, maximum: 1_000_000 },
    'Maximum lines of an import that are no device. At the limit the import ends: its last line says so.',
  ),
};

/** The configuration that the admin server and its own routes read. */
export type AdminApiConfig = ConfigOf<typeof adminKeys> &
  DeclarationConfig &
  DomainConfig & { readonly settings: Settings<{ bodyTimeoutSeconds: number }> };
