import { schemaNamePattern } from '../../../core/identity.ts';
import { parseUuid } from '../../../core/uuid.ts';
import { unpack } from '../../../storage/lmdb/environment/codec.ts';
import type { Action, ActionVersion } from './action.ts';

/** Storage format of actions and their versions in the registry's environment. */

/** fleet id, name: the actions of a fleet are contiguous. */
export function keyOfAction(fleetId: string, name: string): Buffer {
  return Buffer.from(`${fleetId}${name}`, 'latin1');
}

/** action id, number: a new action of the same name never gets the versions of a deleted one. */
export function keyOfVersion(actionId: string, number: number): Buffer {
  const key = Buffer.alloc(40);
  key.write(actionId, 'latin1');
  key.writeUInt32BE(number, 36);
  return key;
}

/** JSON, as msgpack would rename a member called `__proto__`. */
export function packVersion(version: ActionVersion): Buffer {
  return Buffer.from(JSON.stringify(version));
}

/** @throws Error if it is not a version. */
export function unpackVersion(bytes: Buffer): ActionVersion {
  const version = JSON.parse(bytes.toString('utf8')) as Partial<ActionVersion>;
  const isVersion =
    Number.isInteger(version.number) &&
    typeof version.createdAtMs === 'number' &&
    (version.language === 'javascript' || version.language === 'typescript') &&
    typeof version.source === 'string' &&
    typeof version.code === 'string' &&
    Array.isArray(version.on) &&
    typeof version.filter === 'object' &&
    Array.isArray(version.tests);
  if (!isVersion) throw new Error('not a version of an action');
  return version as ActionVersion;
}

/** @throws Error if it is not an action. */
export function unpackAction(bytes: Buffer): Action {
  const action = unpack(bytes) as Partial<Action>;
  const isAction =
    parseUuid(action.id ?? '') !== undefined &&
    typeof action.fleetId === 'string' &&
    schemaNamePattern.test(action.name ?? '') &&
    typeof action.createdAtMs === 'number' &&
    typeof action.enabled === 'boolean' &&
    Number.isInteger(action.version) &&
    Array.isArray(action.versions) &&
    action.versions.every((one) => Number.isInteger(one?.number) && typeof one.createdAtMs === 'number');
  if (!isAction) throw new Error('not an action');
  return action as Action;
}
