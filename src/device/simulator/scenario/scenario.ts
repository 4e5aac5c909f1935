import { Value } from 'typebox/value';
import { OperatorError } from '../../../core/errors.ts';
import { hash32 } from '../payload/noise.ts';
import { builtInProfiles, builtInSchemas } from './built-in-profiles.ts';
import {
  type Profile,
  type ScenarioDocument,
  type ScenarioEvent,
  type SchemasByKind,
  scenarioDocument,
} from './profile.ts';
import { parseDuration, parseShare } from './quantity.ts';

/** Profiles of a scenario: each device keeps the number of its own in a byte. */
const profilesMax = 32;

/** A scenario as it is run. Plain data: it goes to the processes of devices. */
export interface Scenario {
  devices: number;
  milliseconds: number;
  seed: number;
  speed: number;
  names: readonly string[];
  profiles: readonly Profile[];
  /** Share of each profile and of those before it. */
  shares: readonly number[];
  /** Those that the profiles and events name. */
  schemas: Required<SchemasByKind>;
  events: readonly ScenarioEvent[];
  assert: string;
}

/** The number of a device's profile: the same for every seed and number of processes, and shares are met closely. */
export function profileOf({ shares }: Pick<Scenario, 'shares'>, device: number): number {
  const part = ((device + 1) * 0.618_033_988_749_895) % 1;
  const found = shares.findIndex((share) => part < share);
  return found < 0 ? shares.length - 1 : found;
}

/** Reads the text of a scenario file. @throws OperatorError */
export function readScenario(text: string): ScenarioDocument {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new OperatorError(`The scenario is no JSON: ${(error as Error).message}.`);
  }
  if (Value.Check(scenarioDocument, document)) return document;
  const [first] = Value.Errors(scenarioDocument, document);
  throw new OperatorError(`The scenario is invalid: ${first?.instancePath || 'it'} ${first?.message}.`);
}

/** Reads `lock=60%,thermostat=40%`; one name alone is all of it. @throws OperatorError */
export function readMix(text: string): Record<string, number> {
  const mix: Record<string, number> = {};
  for (const part of text.split(',')) {
    const [name = '', share = '100%'] = part.split('=');
    mix[name] = parseShare(share);
  }
  return mix;
}

/** Completes a scenario by what comes along. @throws OperatorError */
export function scenarioOf(document: ScenarioDocument): Scenario {
  const known = { ...builtInProfiles, ...document.profiles };
  const mix = Object.entries(document.mix).filter(([, share]) => share > 0);
  const sum = mix.reduce((total, [, share]) => total + share, 0);
  if (Math.abs(sum - 1) > 1e-6)
    throw new OperatorError(`The shares of the profiles are ${Math.round(sum * 1_000) / 10}%, not 100%.`);
  if (mix.length > profilesMax) throw new OperatorError(`A scenario has at most ${profilesMax} profiles.`);
  const profiles = mix.map(([name]) => {
    if (!Object.hasOwn(known, name))
      throw new OperatorError(`There is no profile ${name}: there are ${Object.keys(known).join(', ')}.`);
    const profile = known[name] as Profile;
    if (profile.sync === true && profile.faults !== undefined)
      throw new OperatorError(`The profile ${name} has "sync" and "faults": it may have one of them.`);
    return profile;
  });
  const events = document.events ?? [];
  let share = 0;
  return {
    devices: document.devices,
    milliseconds: parseDuration(document.for),
    seed: document.seed ?? 1,
    speed: document.speed ?? 1,
    names: mix.map(([name]) => name),
    profiles,
    shares: mix.map(([, own]) => (share += own)),
    schemas: schemasOf(profiles, events, document.schemas ?? {}),
    events: [...events].sort((a, b) => parseDuration(a.at) - parseDuration(b.at)),
    assert: document.assert ?? '',
  };
}

/** Name of the mail of broadcasts without one of their own. */
export const noticeName = 'notice';

function schemasOf(
  profiles: readonly Profile[],
  events: readonly ScenarioEvent[],
  own: SchemasByKind,
): Required<SchemasByKind> {
  const chosen: Required<SchemasByKind> = { datapoint: {}, message: {}, mail: {} };
  const choose = (kind: keyof SchemasByKind, name: string): void => {
    const schema = own[kind]?.[name] ?? builtInSchemas[kind][name];
    if (schema === undefined)
      throw new OperatorError(`The scenario has no ${kind} schema ${name}: give it under "schemas".`);
    chosen[kind][name] = schema;
  };
  for (const { datapoints = [], messages = [], mail } of profiles) {
    for (const { schema } of datapoints) choose('datapoint', schema);
    for (const { schema } of messages) choose('message', schema);
    if (mail?.name !== undefined) choose('mail', mail.name);
  }
  for (const event of events) if (event.event === 'broadcast') choose('mail', event.name ?? noticeName);
  return chosen;
}

/** Events of a run with faults: storms of both kinds, a broadcast, a rotation, a flood, and a kill every half minute. */
export function chaosEvents(milliseconds: number, seed: number): ScenarioEvent[] {
  const seconds = Math.floor(milliseconds / 1_000);
  const at = (part: number): string => `${Math.max(1, Math.floor(seconds * part))}s`;
  const events: ScenarioEvent[] = [
    { at: at(0.1), event: 'broadcast' },
    { at: at(0.2), event: 'storm', jitter: '10s' },
    { at: at(0.3), event: 'rotate', share: 0.05, grace: '60s' },
    { at: at(0.4), event: 'flood', for: at(0.1), perSecond: 1_500 },
    { at: at(0.6), event: 'storm' },
    { at: at(0.7), event: 'broadcast' },
    { at: at(0.8), event: 'rotate', share: 0.05, grace: '60s' },
  ];
  const kills = Math.max(1, Math.floor(seconds / 30));
  for (let kill = 0; kill < kills; kill += 1) {
    const part = (kill + 0.2 + 0.6 * (hash32(seed, kill, 0) / 2 ** 32)) / kills;
    events.push({ at: `${Math.floor(seconds * part * 1_000)}ms`, event: 'kill' });
  }
  return events;
}
