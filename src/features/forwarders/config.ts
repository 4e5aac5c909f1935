import { type ConfigOf, integer, text } from '../../core/config/config-key.ts';

/** Limits of forwarders, and the hosts they may send to. */
export const forwarderKeys = {
  forwardersPerFleetMax: integer(
    { default: 10, minimum: 0, maximum: 1_000 },
    'Forwarders per fleet. Each reads the log separately.',
  ),
  forwardHosts: text(
    '',
    'Hosts that forwarders may send to, separated by commas. `*.example.com` allows every name below it. Empty: any host but metadata addresses: link-local ones (169.254.0.0/16, fe80::/10) and those of clouds (100.100.100.200, 192.0.0.192, 168.63.129.16, fd00:ec2::/32, fd20:ce::254, fd00:c1::a9fe:a9fe, fd00:a9fe:a9fe::1, fd00:42::42), also by name or as IPv4 in IPv6, and those that may hide one (64:ff9b:1::/48, 2001::/32).',
  ),
  forwardBytesMax: integer(
    { default: 67_108_864, minimum: 1_048_576, maximum: 4_294_967_296 },
    'Bytes of records in memory while forwarders send them, shared by fleets: one alone may use half. Beyond it forwarders wait; raise it for many slow receivers.',
  ),
  forwardRetryMilliseconds: integer(
    { default: 1_000, minimum: 10, maximum: 3_600_000 },
    'Backoff after the first failed attempt of a forwarder. It doubles with each further one.',
  ),
  forwardRetrySecondsMax: integer(
    { default: 300, minimum: 1, maximum: 86_400 },
    'Longest backoff of a forwarder, also where the receiver asks for more.',
  ),
  forwardDeadLettersMax: integer(
    { default: 1_000, minimum: 1, maximum: 1_000_000 },
    'Dead letters per forwarder, shared by devices: one alone may use half, and its further refused records are dropped while others are accepted. When all are used, the forwarder stops until some are replayed or dropped.',
  ),
  forwardDeadLetterBytesMax: integer(
    { default: 67_108_864, minimum: 1, maximum: 1_099_511_627_776 },
    'Bytes of them per forwarder, shared and reached like forwardDeadLettersMax.',
  ),
};

export type ForwarderConfig = ConfigOf<typeof forwarderKeys>;
