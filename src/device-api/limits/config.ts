import { integer } from '../../core/config/config-key.ts';

/** What one client, device, address or fleet may take of the server, and all of them together. */
export const clientLimitKeys = {
  bodyMemoryBytesMax: integer(
    67_108_864,
    1_048_576,
    17_179_869_184,
    'Bytes of bodies, half received or half sent, that one worker keeps in memory. A device or an address gets a share of it; beyond, the oldest goes with a 503.',
  ),
  claimBytesMax: integer(4_096, 1_024, 65_536, 'Largest body of a claim.'),
  claimMemoryBytesMax: integer(
    1_048_576,
    262_144,
    1_073_741_824,
    'Bytes of claims, half received, that one worker keeps in memory; likewise, by address.',
  ),
  connectionsMax: integer(
    100_000,
    16,
    10_000_000,
    'Open connections of the device API, and at most what the limit of open files leaves; one more is closed.',
  ),
  connectionsPerAddressMax: integer(
    20_000,
    0,
    10_000_000,
    'Open connections of one address, counted once a second while there are more in all; 0 for no limit.',
  ),
  unauthorizedMax: integer(
    10,
    0,
    1_000_000,
    'Answers 401 in unauthorizedWindowSeconds after which an address is locked out from a device id; 0 never (D6).',
  ),
  unauthorizedWindowSeconds: integer(
    60,
    1,
    3_600,
    'Time in which 401s are counted, and length of the first lockout (D6).',
  ),
  lockoutSecondsMax: integer(
    900,
    1,
    86_400,
    'Longest lockout: each is twice as long as the one before (D6).',
  ),
  deviceRequestsPerSecondMax: integer(
    1_000,
    0,
    1_000_000,
    'Requests of one device, unless its fleet says otherwise; beyond twice as many at once, 429; 0 for no limit.',
  ),
  deviceBytesPerSecondMax: integer(
    1_048_576,
    0,
    1_073_741_824,
    'Bytes of bodies of one device, unless its fleet says otherwise; beyond twice as many at once, 429; 0 for no limit.',
  ),
  fleetRequestsPerSecondMax: integer(
    0,
    0,
    100_000_000,
    'Requests of all devices of one fleet, likewise; 0 for no limit.',
  ),
  anonymousRequestsPerSecondMax: integer(
    1_000,
    0,
    1_000_000,
    'Requests of one address without valid credentials, likewise; 0 for no limit.',
  ),
};
