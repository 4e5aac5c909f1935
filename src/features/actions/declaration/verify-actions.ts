import type { Findings } from '../../../storage/lmdb/environment/findings.ts';
import type { Action } from './action.ts';
import { keyOfAction, keyOfVersion, unpackAction, unpackVersion } from './action-records.ts';

/** Of one table; its damage has been told. */
type Entries = Iterable<{ key: Buffer; value: Buffer }>;

/** Walks every action and every version of one; answers how many actions there are. */
export function verifyActions(
  entries: { actions: Entries; versions: Entries },
  fleets: ReadonlySet<string>,
  findings: Findings,
): number {
  /** Versions that have to be there, and whose they are. */
  const expected = new Map<string, Action>();
  let actions = 0;
  for (const { key, value } of entries.actions) {
    actions += 1;
    const wrong = checkAction(key, value, fleets, expected);
    if (wrong !== undefined) findings.add(`registry, actions: key ${hex(key)} ${wrong}`);
  }
  for (const { key, value } of entries.versions) {
    const wrong = !isVersion(key, value)
      ? 'does not decode'
      : expected.delete(hex(key))
        ? undefined
        : 'is of no action that has it';
    if (wrong !== undefined) findings.add(`registry, actionVersions: key ${hex(key)} ${wrong}`);
  }
  for (const [key, { name }] of expected) {
    findings.add(`registry, actionVersions: key ${key} of action ${name} is missing`);
  }
  return actions;
}

function checkAction(
  key: Buffer,
  value: Buffer,
  fleets: ReadonlySet<string>,
  expected: Map<string, Action>,
): string | undefined {
  try {
    const action = unpackAction(value);
    const { id, fleetId, name, version, versions } = action;
    if (!key.equals(keyOfAction(fleetId, name))) return 'is not its own';
    for (const { number } of versions) expected.set(hex(keyOfVersion(id, number)), action);
    if (!versions.some(({ number }) => number === version)) return 'has not the version that runs';
    return fleets.has(fleetId) ? undefined : 'is of a fleet that does not exist';
  } catch {
    return 'does not decode';
  }
}

function isVersion(key: Buffer, value: Buffer): boolean {
  try {
    return key.length === 40 && unpackVersion(value).number === key.readUInt32BE(36);
  } catch {
    return false;
  }
}

/** Bounded: a damaged key can be anything. */
function hex(key: Buffer): string {
  return key.toString('hex', 0, 300);
}
