import { address, integer, text } from '../core/config/config-key.ts';

/** Who reaches the admin API, and what its connections may take. */
export const adminKeys = {
  admin: address(
    '127.0.0.1:8444',
    'Address of the admin API, plain HTTP: loopback only. Port 0 takes any free port.',
  ),
  probe: address(
    '',
    'Another address, of any interface, for `/healthz`, `/readyz` and `/metrics` alone, plain HTTP. Empty: none.',
  ),
  adminHosts: text(
    '',
    'Host names, separated by commas, under which the admin API may be asked besides those of loopback and its own address: a proxy passes one on. A request for another is answered 403.',
  ),
  adminConnectionsMax: integer(
    1_024,
    16,
    100_000,
    'Open connections of the admin API, and as many of `probe`. At the limit idle ones are closed; if none is, the new one.',
  ),
  adminPipelinedMax: integer(
    16,
    1,
    10_000,
    'Requests that may wait behind another on the same connection of the admin API; with one more it is closed.',
  ),
  adminUnreadBytesMax: integer(
    268_435_456,
    1_048_576,
    17_179_869_184,
    'Bytes of answers of the admin API that wait for clients that do not read; with more, the oldest is cut off.',
  ),
  adminHeadSeconds: integer(
    10,
    1,
    600,
    'Time the head of a request to the admin API may take to arrive; then the connection is closed.',
  ),
};
