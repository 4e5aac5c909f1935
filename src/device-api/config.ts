import { address, boolean, integer, reloadable, text, type ValuesOf } from '../core/config/config-key.ts';
import type { DeclarationConfig } from '../declarations/config.ts';
import type { DomainConfig } from '../domain/config.ts';
import type { StorageConfig } from '../storage/config.ts';

/** What one client, device, address or fleet may take of the device API, and all of them together. */
export const deviceApiKeys = {
  listen: address('127.0.0.1:8443', 'Address of the device API, HTTPS only. Port 0 takes any free port.'),
  hostSuffix: reloadable(
    text('', 'With device.example.com, the host FLEET.device.example.com names the fleet (D5).'),
  ),
  strictStatuses: boolean(
    false,
    "Answer only statuses of the specification's table (D8). For devices that know no other.",
  ),
  bodyTimeoutSeconds: reloadable(
    integer(
      60,
      1,
      3_600,
      'Time a request body may take to arrive (D22); of an import of devices, its next piece. Raise it for slow links.',
    ),
  ),
  requestTimeoutSeconds: reloadable(
    integer(90, 2, 7_200, 'Time a request may take in all, its body included; more than bodyTimeoutSeconds.'),
  ),
  bodyMemoryBytesMax: integer(
    67_108_864,
    1_048_576,
    17_179_869_184,
    'Bytes of bodies, half received or half sent, that one worker keeps in memory. A device or an address gets a share of it; beyond, the oldest goes with a 503. Raise it for many slow links.',
  ),
  claiming: reloadable(
    boolean(false, 'Whether devices may register themselves, with a claim token, at POST /v1/claim.'),
  ),
  claimMemoryBytesMax: integer(
    1_048_576,
    262_144,
    1_073_741_824,
    'Bytes of claims, half received, that one worker keeps in memory; likewise, by address. Raise it for many that claim at once.',
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
    'Open connections of one address, counted once a second while there are more in all; 0 for no limit. Raise it for a fleet behind one NAT.',
  ),
  unauthorizedMax: reloadable(
    integer(
      10,
      0,
      1_000_000,
      'Answers 401 in unauthorizedWindowSeconds after which an address is locked out from a device id; 0 never (D6).',
    ),
  ),
  unauthorizedWindowSeconds: reloadable(
    integer(60, 1, 3_600, 'Time in which 401s are counted, and length of the first lockout (D6).'),
  ),
  lockoutSecondsMax: reloadable(
    integer(
      900,
      1,
      86_400,
      'Longest lockout: each is twice as long as the one before (D6). Lower it where devices are often set up wrong.',
    ),
  ),
  anonymousRequestsPerSecondMax: reloadable(
    integer(
      1_000,
      0,
      1_000_000,
      'Requests of one address without valid credentials; beyond twice as many at once, 429; 0 for no limit. Raise it for a fleet behind one NAT that claims.',
    ),
  ),
  cachedDevicesMax: integer(
    200_000,
    2,
    10_000_000,
    'Devices that each worker remembers after they showed their secret, some 300 bytes each. Raise it to the devices that are active.',
  ),
  streamKeepAliveSeconds: integer(
    30,
    1,
    300,
    'Time between keep_alive events of a stream (D20). Lower it for a NAT on the way that forgets sooner.',
  ),
  streamsPerDeviceMax: integer(4, 1, 64, 'Open event streams of one device; the oldest makes room (D21).'),
  streamsPerWorkerMax: reloadable(
    integer(
      250_000,
      1,
      10_000_000,
      'Open event streams of one worker, which take memory; one more is answered 503.',
    ),
  ),
  activityFlushSeconds: integer(
    5,
    1,
    300,
    'How often last-seen times and fetch counts are written; a crash loses that much of them (D13). Raise it for less writing.',
  ),
};

export type DeviceApiConfig = ValuesOf<typeof deviceApiKeys> &
  DomainConfig &
  DeclarationConfig &
  Pick<StorageConfig, 'databaseTimeoutMilliseconds'>;
