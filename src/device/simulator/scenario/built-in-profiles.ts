import type { Profile, SchemasByKind } from './profile.ts';

/** Profiles that come along; a scenario may have others, or others of the same name. */
export const builtInProfiles: Readonly<Record<string, Profile>> = {
  /** Measures every half minute, and now and then says that it was turned. */
  thermostat: {
    heartbeat: { every: '60s', spread: 'poisson' },
    datapoints: [{ schema: 'climate', every: '30s', spread: 'fixed' }],
    messages: [{ schema: 'turned', every: '10m', spread: 'daily' }],
    mail: { by: 'heartbeat', think: '200ms', reject: 0.02, name: 'set_target', every: '10m' },
    connection: 'shared',
  },
  /** Waits for commands on an event stream, and says each time that it was used. */
  lock: {
    heartbeat: { every: '60s', spread: 'fixed' },
    messages: [{ schema: 'used', every: '2m', spread: 'daily' }],
    mail: {
      by: 'stream',
      think: '300ms',
      reject: 0.05,
      requeue: 0.05,
      crash: 0.02,
      restart: '3s',
      name: 'bolt',
      every: '3m',
    },
    connection: 'own',
  },
  /** Moves through tunnels: its network goes up and down, and what it measured waits. */
  tracker: {
    heartbeat: { every: '2m', spread: 'poisson' },
    datapoints: [{ schema: 'position', every: '20s', spread: 'fixed' }],
    mail: {
      by: 'poll',
      poll: '60s',
      think: '100ms',
      crash: 0.05,
      restart: '5s',
      name: 'route',
      every: '10m',
    },
    connection: 'own',
    sync: true,
    network: { up: '3m', down: '40s', latency: '80ms', queue: 200 },
  },
  /** Speaks for a whole house: often, on one connection. */
  gateway: {
    heartbeat: { every: '30s', spread: 'fixed' },
    datapoints: [
      { schema: 'climate', every: '5s', spread: 'poisson' },
      { schema: 'meter', every: '10s', spread: 'fixed' },
    ],
    messages: [{ schema: 'used', every: '60s', spread: 'poisson' }],
    mail: { by: 'stream', think: '50ms', requeue: 0.1, name: 'bolt', every: '60s' },
    connection: 'own',
  },
  /** Measures asleep, and is awake for some seconds every few minutes. */
  sleeper: {
    datapoints: [{ schema: 'meter', every: '60s', spread: 'fixed' }],
    mail: { by: 'poll', poll: '4s', think: '100ms', name: 'set_target', every: '30m' },
    connection: 'each',
    sync: true,
    network: { up: '10s', down: '4m', latency: '40ms', queue: 1_000 },
  },
  /** Does what should not be done. */
  faulty: {
    heartbeat: { every: '30s', spread: 'poisson' },
    datapoints: [{ schema: 'climate', every: '20s', spread: 'poisson' }],
    mail: {
      by: 'poll',
      poll: '30s',
      think: '100ms',
      reject: 0.3,
      requeue: 0.2,
      crash: 0.3,
      restart: '2s',
      name: 'bolt',
      every: '5m',
    },
    connection: 'own',
    network: { up: '2m', down: '10s', queue: 20 },
    faults: { invalid: 0.05, secret: 0.02, cut: 0.1, unkeyed: 0.2, impatient: true },
  },
};

const percent = { type: 'integer', minimum: 0, maximum: 100 };

/** Schemas of those profiles. */
export const builtInSchemas: Required<SchemasByKind> = {
  datapoint: {
    climate: {
      type: 'object',
      properties: {
        celsius: { type: 'number', minimum: 15, maximum: 30 },
        humidity: percent,
        heating: { type: 'boolean' },
      },
      required: ['celsius', 'humidity'],
      additionalProperties: false,
    },
    position: {
      type: 'object',
      properties: {
        latitude: { type: 'number', minimum: 47, maximum: 55 },
        longitude: { type: 'number', minimum: 6, maximum: 15 },
        satellites: { type: 'integer', minimum: 0, maximum: 32 },
      },
      required: ['latitude', 'longitude'],
      additionalProperties: false,
    },
    meter: {
      type: 'object',
      properties: {
        watts: { type: 'number', minimum: 0, maximum: 3_500 },
        battery: percent,
        state: { enum: ['ok', 'low', 'replaced'] },
      },
      required: ['watts'],
      additionalProperties: false,
    },
  },
  message: {
    turned: {
      type: 'object',
      properties: { target: { type: 'number', minimum: 15, maximum: 28, multipleOf: 0.5 } },
      required: ['target'],
      additionalProperties: false,
    },
    used: {
      type: 'object',
      properties: { by: { enum: ['key', 'code', 'phone'] }, opened: { type: 'boolean' } },
      required: ['by', 'opened'],
      additionalProperties: false,
    },
  },
  mail: {
    set_target: {
      type: 'object',
      properties: { celsius: { type: 'number', minimum: 15, maximum: 28 } },
      required: ['celsius'],
      additionalProperties: false,
    },
    bolt: {
      type: 'object',
      properties: { to: { enum: ['open', 'closed'] } },
      required: ['to'],
      additionalProperties: false,
    },
    route: {
      type: 'object',
      properties: {
        stops: { type: 'array', items: { type: 'string', minLength: 3, maxLength: 12 }, maxItems: 5 },
      },
      required: ['stops'],
      additionalProperties: false,
    },
    notice: {
      type: 'object',
      properties: { version: { type: 'integer', minimum: 1, maximum: 99 } },
      required: ['version'],
      additionalProperties: false,
    },
  },
};
