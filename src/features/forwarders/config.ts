import { integer, text, type ValuesOf } from '../../core/config/config-key.ts';

/** What forwarders may take of the server, and where they may send. */
export const forwarderKeys = {
  forwardersPerFleetMax: integer(
    10,
    0,
    1_000,
    'Forwarders of one fleet, each of which reads the log for itself.',
  ),
  forwardHosts: text(
    '',
    'Hosts that forwarders may send to, separated by commas; `*.example.com` is every name below it. Empty: any host but link-local addresses (169.254.0.0/16, fe80::/10, fd00:ec2::/32), also by name.',
  ),
  forwardBytesMax: integer(
    67_108_864,
    1_048_576,
    4_294_967_296,
    'Bytes of records that forwarders hold while they are being sent, shared by fleets: one alone has half; others wait. Raise it for many slow receivers.',
  ),
  forwardRetryMilliseconds: integer(
    1_000,
    10,
    3_600_000,
    'Time from the first attempt of a forwarder at a batch to the second; it doubles with each.',
  ),
  forwardRetrySecondsMax: integer(
    300,
    1,
    86_400,
    'The longest that a forwarder waits before another attempt, also where the receiver asks for more.',
  ),
  forwardDeadLettersMax: integer(
    1_000,
    1,
    1_000_000,
    'Dead letters of one forwarder, shared by devices: one alone has half, and what else of it is refused is dropped while others are taken; with all of them it stops until some are replayed or dropped.',
  ),
};

export type ForwarderConfig = ValuesOf<typeof forwarderKeys>;
