import { type Static, Type } from 'typebox';

/** A length of time in a scenario, like `90s`. */
const duration = Type.String({ pattern: '^\\d{1,9}(\\.\\d{1,3})?(ms|s|m|h|d)$' });
const share = Type.Number({ minimum: 0, maximum: 1 });
const schemaName = Type.String({ pattern: '^[A-Za-z0-9_-]{1,255}$' });
const closed = { additionalProperties: false };

/** How often something happens: at random, at fixed intervals, or at random and more by day than by night. */
const rhythm = Type.Object(
  {
    every: duration,
    spread: Type.Optional(Type.Enum(['poisson', 'fixed', 'daily'])),
  },
  closed,
);
export type Rhythm = Static<typeof rhythm>;

const sendPlan = Type.Object({ schema: schemaName, ...rhythm.properties }, closed);
export type SendPlan = Static<typeof sendPlan>;

/** Mail of a device: how it handles it, and how often an operator sends it some. */
const mailPlan = Type.Object(
  {
    /** Way in which it learns of mail. */
    by: Type.Enum(['stream', 'poll', 'heartbeat']),
    poll: Type.Optional(duration),
    think: Type.Optional(duration),
    /** The rest is acknowledged. `crash`: it drops its connection, forgets the mail, and is back after `restart`. */
    reject: Type.Optional(share),
    requeue: Type.Optional(share),
    crash: Type.Optional(share),
    restart: Type.Optional(duration),
    /** Mail for each of these devices, by an operator. */
    name: Type.Optional(schemaName),
    every: Type.Optional(duration),
  },
  closed,
);
export type MailPlan = Static<typeof mailPlan>;

const networkPlan = Type.Object(
  {
    /** Mean lengths, at random. */
    up: Type.Optional(duration),
    down: Type.Optional(duration),
    /** Before each request. */
    latency: Type.Optional(duration),
    /** Readings that wait while it is down; beyond, the oldest are dropped. */
    queue: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
  },
  closed,
);

/** Chances that a send is not what it should be. */
const faultPlan = Type.Object(
  {
    /** A body that is no JSON. */
    invalid: Type.Optional(share),
    /** A secret that is not the device's. */
    secret: Type.Optional(share),
    /** A connection that is dropped in the middle of a request, which then is repeated with its key. */
    cut: Type.Optional(share),
    /** A request without a key, which is not repeated. */
    unkeyed: Type.Optional(share),
    /** Comes back at once, and every second, instead of with jitter. */
    impatient: Type.Optional(Type.Boolean()),
  },
  closed,
);

const profile = Type.Object(
  {
    heartbeat: Type.Optional(rhythm),
    datapoints: Type.Optional(Type.Array(sendPlan, { maxItems: 4 })),
    messages: Type.Optional(Type.Array(sendPlan, { maxItems: 4 })),
    mail: Type.Optional(mailPlan),
    /** Shared with other devices; its own while it is in use; or a fresh one for each request. */
    connection: Type.Optional(Type.Enum(['shared', 'own', 'each'])),
    /** Sends all that waits, what became of a mail and the question for the next in one request; not with faults. */
    sync: Type.Optional(Type.Boolean()),
    network: Type.Optional(networkPlan),
    faults: Type.Optional(faultPlan),
  },
  closed,
);
/** Behaviour of devices of one kind. */
export type Profile = Static<typeof profile>;

const schemasByName = Type.Record(schemaName, Type.Unsafe<Record<string, unknown>>({ type: 'object' }));
const schemasByKind = Type.Object(
  {
    datapoint: Type.Optional(schemasByName),
    message: Type.Optional(schemasByName),
    mail: Type.Optional(schemasByName),
  },
  closed,
);
export type SchemasByKind = Static<typeof schemasByKind>;

const at = { at: duration };
const event = Type.Union([
  Type.Object({ ...at, event: Type.Literal('ramp'), over: duration }, closed),
  Type.Object({ ...at, event: Type.Literal('storm'), jitter: Type.Optional(duration) }, closed),
  Type.Object({ ...at, event: Type.Literal('broadcast'), name: Type.Optional(schemaName) }, closed),
  Type.Object({ ...at, event: Type.Literal('rotate'), share, grace: Type.Optional(duration) }, closed),
  Type.Object(
    {
      ...at,
      event: Type.Literal('flood'),
      for: duration,
      perSecond: Type.Integer({ minimum: 1, maximum: 100_000 }),
    },
    closed,
  ),
  Type.Object({ ...at, event: Type.Literal('kill') }, closed),
]);
/** An event that happens to a fleet, and when. */
export type ScenarioEvent = Static<typeof event>;

/** A scenario as its file has it. */
export const scenarioDocument = Type.Object(
  {
    devices: Type.Integer({ minimum: 1, maximum: 10_000_000 }),
    for: duration,
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_295 })),
    /** Factor of all rates. */
    speed: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10_000 })),
    /** Shares by profile: of those that come along, or of this file. */
    mix: Type.Record(Type.String(), share),
    profiles: Type.Optional(Type.Record(Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' }), profile)),
    schemas: Type.Optional(schemasByKind),
    events: Type.Optional(Type.Array(event, { maxItems: 1_000 })),
    assert: Type.Optional(Type.String({ maxLength: 4_096 })),
  },
  closed,
);
export type ScenarioDocument = Static<typeof scenarioDocument>;
