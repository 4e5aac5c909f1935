import type { ConnectionUse } from '../connection/connections.ts';
import { PayloadMaker } from '../payload/payload-maker.ts';
import type { MailPlan, Profile, Rhythm } from '../scenario/profile.ts';
import { parseDuration } from '../scenario/quantity.ts';
import type { Scenario } from '../scenario/scenario.ts';

/** A rhythm in milliseconds. */
export interface Tempo {
  everyMs: number;
  spread: 'poisson' | 'fixed' | 'daily';
}

/** Sends of one kind, with what makes their bodies. */
export interface SendBeat extends Tempo {
  route: 'datapoint' | 'message';
  schema: string;
  path: string;
  maker: PayloadMaker;
}

/** Chances of what becomes of a mail, each with those before it. */
interface MailEnds {
  crash: number;
  reject: number;
  requeue: number;
}

/** A profile as it is worked with: in milliseconds, without anything absent. */
export interface Plan {
  heartbeat: Tempo | undefined;
  sends: readonly SendBeat[];
  mail:
    | { by: MailPlan['by']; pollMs: number; thinkMs: number; restartMs: number; ends: MailEnds }
    | undefined;
  use: ConnectionUse;
  /** All of a wake is one request, instead of one route after the other. */
  isSync: boolean;
  /** Mean lengths; without `downMs` it is always up. */
  upMs: number;
  downMs: number;
  latencyMs: number;
  queueMax: number;
  invalid: number;
  secret: number;
  cut: number;
  unkeyed: number;
  isImpatient: boolean;
}

const queueUsual = 100;

/** Prepares every profile of a scenario. @throws OperatorError for a schema that nothing can be made of. */
export function plansOf({ profiles, schemas, speed }: Scenario): Plan[] {
  const makers = new Map<string, PayloadMaker>();
  const sendBeat = (
    route: SendBeat['route'],
    { schema, ...rhythm }: Rhythm & { schema: string },
  ): SendBeat => {
    const path = `/v1/${route === 'message' ? 'msg' : route}/${schema}`;
    const maker = makers.get(path) ?? new PayloadMaker(schema, schemas[route][schema] ?? {});
    makers.set(path, maker);
    return { ...beatOf(rhythm, speed), route, schema, path, maker };
  };
  return profiles.map((profile) => ({
    ...partsOf(profile, speed),
    sends: [
      ...(profile.datapoints ?? []).map((one) => sendBeat('datapoint', one)),
      ...(profile.messages ?? []).map((one) => sendBeat('message', one)),
    ],
  }));
}

function beatOf({ every, spread = 'poisson' }: Rhythm, speed: number): Tempo {
  return { everyMs: Math.max(1, parseDuration(every) / speed), spread };
}

function partsOf(
  { heartbeat, mail, connection, sync, network, faults }: Profile,
  speed: number,
): Omit<Plan, 'sends'> {
  return {
    heartbeat: heartbeat && beatOf(heartbeat, speed),
    mail: mail && mailOf(mail, speed),
    use: connection ?? 'shared',
    isSync: sync ?? false,
    upMs: parseDuration(network?.up ?? '1h'),
    downMs: parseDuration(network?.down ?? '0s'),
    latencyMs: parseDuration(network?.latency ?? '0s'),
    queueMax: network?.queue ?? queueUsual,
    invalid: faults?.invalid ?? 0,
    secret: faults?.secret ?? 0,
    cut: faults?.cut ?? 0,
    unkeyed: faults?.unkeyed ?? 0,
    isImpatient: faults?.impatient ?? false,
  };
}

function mailOf(mail: MailPlan, speed: number): Plan['mail'] {
  const { by, poll = '60s', think = '100ms', restart = '5s', crash = 0, reject = 0, requeue = 0 } = mail;
  return {
    by,
    pollMs: Math.max(1, parseDuration(poll) / speed),
    thinkMs: parseDuration(think),
    restartMs: parseDuration(restart),
    ends: { crash, reject: crash + reject, requeue: crash + reject + requeue },
  };
}

/** Hours by whose distance from this one things happen less often. */
const busiestHour = 18;

/** How much of its usual rate a daily rhythm has at that time, from 0.2 to 1. */
export function daylight(timeMs: number): number {
  const hour = (timeMs / 3_600_000) % 24;
  return 0.6 + 0.4 * Math.cos(((hour - busiestHour) / 12) * Math.PI);
}

/** Time until it happens next, from a number drawn. */
export function pauseOf({ everyMs, spread }: Tempo, drawn: number, timeMs: number): number {
  if (spread === 'fixed') return everyMs;
  const rate = spread === 'daily' ? daylight(timeMs) : 1;
  return (-Math.log(1 - drawn) * everyMs) / rate;
}
