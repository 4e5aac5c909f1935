import { schemaNamePattern } from '../../../core/identity.ts';
import { parseUuid } from '../../../core/uuid.ts';
import { json, packed } from '../../../storage/tables/codec.ts';
import type { TableLayout } from '../../../storage/tables/collection.ts';
import {
  fleetIdField,
  KeyCodec,
  numberField,
  textField,
  uuidTextField,
} from '../../../storage/tables/key-codec.ts';
import type { Action, ActionVersion } from './action.ts';

export type ActionKey = [fleetId: string, name: string];

/** actions: fleet, name. In the store of declarations, as are their versions. */
export const actionTable: TableLayout<ActionKey, Action> = {
  name: 'actions',
  key: new KeyCodec(fleetIdField, textField(schemaNamePattern)),
  value: packed(
    (action) =>
      parseUuid(action.id ?? '') !== undefined &&
      typeof action.createdAtMs === 'number' &&
      typeof action.enabled === 'boolean' &&
      parseUuid(action.begin?.id ?? '') !== undefined &&
      Array.isArray(action.begin?.logEnds) &&
      Number.isInteger(action.version) &&
      Array.isArray(action.versions) &&
      action.versions.every(
        (one) =>
          Number.isInteger(one?.number) &&
          typeof one.createdAtMs === 'number' &&
          (one.by === undefined || typeof one.by === 'string'),
      ),
  ),
  isOwn: ([fleetId, name], action) => action.fleetId === fleetId && action.name === name,
};

export type VersionKey = [actionId: string, number: number];

/** actionVersions: action, number. A new action of the same name never gets the versions of a deleted one. */
export const versionTable: TableLayout<VersionKey, ActionVersion> = {
  name: 'actionVersions',
  key: new KeyCodec(uuidTextField, numberField(4)),
  value: json(
    (version) =>
      typeof version.createdAtMs === 'number' &&
      (version.language === 'javascript' || version.language === 'typescript') &&
      typeof version.source === 'string' &&
      typeof version.code === 'string' &&
      Array.isArray(version.on) &&
      typeof version.filter === 'object' &&
      Array.isArray(version.tests),
  ),
  isOwn: ([, number], version) => version.number === number,
};
