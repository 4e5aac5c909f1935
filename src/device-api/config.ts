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
  strictStatuses: boolean(false, "Answer only statuses of the specification's table (D8)."),
  bodyTimeoutSeconds: reloadable(
    integer(
      60,
      1,
      3_600,
      'Time a request body may take to arrive (D22); of an import of devices, its next piece.',
    ),
  ),
  requestTimeoutSeconds: reloadable(
    integer(90, 2, 7_200, 'Time a request may take in all, its body included.'),
  ),
  bodyMemoryBytesMax: integer(
    67_108_864,
    1_048_576,
    17_179_869_184,
    'Bytes of bodies, half received or half sent, that one worker keeps in memory. A device or an address gets a share of it; beyond, the oldest goes with a 503.',
  ),
  claiming: reloadable(
    boolean(false, 'Whether devices may register themselves, with a claim token, at POST /v1/claim.'),
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
    integer(900, 1, 86_400, 'Longest lockout: each is twice as long as the one before (D6).'),
  ),
  anonymousRequestsPerSecondMax: reloadable(
    integer(
      1_000,
      0,
      1_000_000,
      'Requests of one address without valid credentials, likewise; 0 for no limit.',
    ),
  ),
  knownDevicesMax: integer(
    200_000,
    2,
    10_000_000,
    'Devices that each worker remembers after they showed their secret, some 300 bytes each.',
  ),
  streamKeepAliveSeconds: integer(30, 1, 300, 'Time between keep_alive events of a stream (D20).'),
  streamsPerDeviceMax: integer(4, 1, 64, 'Open event streams of one device; the oldest makes room (D21).'),
  streamsPerWorkerMax: reloadable(
    integer(250_000, 1, 10_000_000, 'Open event streams of one worker; one more is answered 503.'),
  ),
  streamBufferBytesMax: reloadable(
    integer(65_536, 1_024, 1_048_576, 'Bytes that may wait for a stream that does not read (D21).'),
  ),
  activityFlushSeconds: integer(
    5,
    1,
    300,
    'How often last-seen times and fetch counts are written; a crash loses that much of them (D13).',
  ),
};

export type DeviceApiConfig = ValuesOf<typeof deviceApiKeys> &
  DomainConfig &
  DeclarationConfig &
  Pick<StorageConfig, 'databaseTimeoutMilliseconds'>;
