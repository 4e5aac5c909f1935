import { address, boolean, type ConfigOf, integer, port, text } from '../core/config/config-key.ts';
import type { DeclarationConfig } from '../declarations/config.ts';
import type { DomainConfig } from '../domain/config.ts';
import type { StorageConfig } from '../storage/config.ts';

/** Limits of the device API: for one client, device, address or fleet, and for all together. */
export const deviceApiKeys = {
  listen: address('127.0.0.1:8443', 'Address of the device API, HTTPS only. Port 0 takes any free port.'),
  publicUrl: text(
    '',
    'URL by which devices reach the device API where that is not `listen`: behind a balancer, a tunnel or another port. First steps and programs of the console have it. Empty: made from `listen` and the certificate.',
    {
      pattern: `^$|^https://(?:\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+)(?::${port})?$`,
      patternText: 'an https:// URL of a host and perhaps a port, without a path',
      isReloadable: true,
    },
  ),
  hostSuffix: text(
    '',
    'Host suffix. With device.example.com, the host FLEET.device.example.com names the fleet (D5). Empty: not checked.',
    { isReloadable: true },
  ),
  strictStatuses: boolean(
    false,
    "Strict statuses. Answers only statuses of the specification's table (D8), for devices that know no other.",
  ),
  bodyTimeoutSeconds: integer(
    { default: 60, minimum: 1, maximum: 3_600, isReloadable: true },
    'Timeout for receiving a request body (D22), or the next chunk of a device import. Raise it for slow links.',
  ),
  requestTimeoutSeconds: integer(
    { default: 90, minimum: 2, maximum: 7_200, isReloadable: true },
    'Timeout for a whole request, including its body. Must exceed bodyTimeoutSeconds.',
  ),
  bodyMemoryBytesMax: integer(
    { default: 67_108_864, minimum: 1_048_576, maximum: 17_179_869_184 },
    'Memory of one worker for partly received or partly sent bodies. A device or an address gets a share of it; beyond, the oldest is dropped with a 503. Raise it for many slow links.',
  ),
  claiming: boolean(
    false,
    'Claiming. Devices with a claim token may register themselves at POST /v1/claim.',
    { isReloadable: true },
  ),
  claimMemoryBytesMax: integer(
    { default: 1_048_576, minimum: 262_144, maximum: 1_073_741_824 },
    'Memory of one worker for partly received claims, shared by address. Raise it if many devices claim at once.',
  ),
  connectionsMax: integer(
    { default: 100_000, minimum: 16, maximum: 10_000_000 },
    'Maximum open connections of the device API, further bounded by the limit of open files. One more is closed.',
  ),
  connectionsPerAddressMax: integer(
    { default: 20_000, minimum: 0, maximum: 10_000_000 },
    'Maximum open connections per address, counted once a second while more are open in total. Raise it for a fleet behind one NAT. 0: no limit.',
  ),
  connectionsPerSecondPerAddressMax: integer(
    { default: 200, minimum: 0, maximum: 1_000_000, isReloadable: true },
    'Maximum new connections per second and address of one worker while it is busy. One more is closed before its handshake. Raise it for a fleet behind one NAT or proxy. 0: no limit.',
  ),
  unauthorizedMax: integer(
    { default: 10, minimum: 0, maximum: 1_000_000, isReloadable: true },
    'Number of 401s within unauthorizedWindowSeconds after which an address is locked out from a device id (D6). 0: never.',
  ),
  unauthorizedWindowSeconds: integer(
    { default: 60, minimum: 1, maximum: 3_600, isReloadable: true },
    'Window in which 401s are counted, and length of the first lockout (D6).',
  ),
  lockoutSecondsMax: integer(
    { default: 900, minimum: 1, maximum: 86_400, isReloadable: true },
    'Longest lockout. Each lockout is twice as long as the one before (D6). Lower it where devices are often set up wrong.',
  ),
  anonymousRequestsPerSecondMax: integer(
    { default: 1_000, minimum: 0, maximum: 1_000_000, isReloadable: true },
    'Maximum requests per second and address without valid credentials. Bursts up to twice that are allowed; beyond, 429. Raise it for a fleet that claims behind one NAT. 0: no limit.',
  ),
  cachedDevicesMax: integer(
    { default: 200_000, minimum: 2, maximum: 10_000_000 },
    'Authenticated devices that each worker caches, some 300 bytes each. Raise it to the number of active devices.',
  ),
  streamKeepAliveSeconds: integer(
    { default: 30, minimum: 1, maximum: 300 },
    'Interval of keep_alive events of a stream (D20). Lower it if a NAT in between drops idle connections sooner.',
  ),
  streamsPerDeviceMax: integer(
    { default: 4, minimum: 1, maximum: 64 },
    'Maximum open event streams per device. One more closes the oldest (D21).',
  ),
  streamsPerWorkerMax: integer(
    { default: 250_000, minimum: 1, maximum: 10_000_000, isReloadable: true },
    'Maximum open event streams and requests that wait for mail per worker, which take memory. One more is answered 503.',
  ),
  activityFlushSeconds: integer(
    { default: 5, minimum: 1, maximum: 300 },
    'Interval at which last-seen times and fetch counts are written. A crash loses at most that much of them (D13). Raise it for fewer writes.',
  ),
};

export type DeviceApiConfig = ConfigOf<typeof deviceApiKeys> &
  DomainConfig &
  DeclarationConfig &
  Pick<StorageConfig, 'databaseTimeoutMilliseconds'>;
