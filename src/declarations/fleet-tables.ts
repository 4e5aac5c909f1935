import { schemaNamePattern } from '../core/identity.ts';
import { packed } from '../storage/tables/codec.ts';
import type { TableLayout } from '../storage/tables/collection.ts';
import { fleetIdField, KeyCodec, type KeyField, textField } from '../storage/tables/key-codec.ts';
import type { Fleet } from './fleet.ts';
import { type SchemaKind, schemaKinds } from './schemas/schema.ts';

/** fleets: fleet. */
export const fleetTable: TableLayout<[string], Fleet> = {
  name: 'fleets',
  key: new KeyCodec(fleetIdField),
  value: packed(({ name, createdAtMs }) => typeof name === 'string' && typeof createdAtMs === 'number'),
  isOwn: ([fleetId], fleet) => fleet.fleetId === fleetId,
};

const kindField: KeyField<SchemaKind> = {
  bytes: 1,
  encode: (kind) => Buffer.from(String(schemaKinds.indexOf(kind))),
  decode: (bytes) => {
    const kind = schemaKinds[Number(bytes.toString('latin1'))];
    if (kind === undefined) throw new Error('not the kind of a schema');
    return kind;
  },
};

export type SchemaKey = [fleetId: string, kind: SchemaKind, name: string];

/** schemas: fleet, kind, name → the JSON Schema as put. */
export const schemaTable: TableLayout<SchemaKey, string> = {
  name: 'schemas',
  key: new KeyCodec(fleetIdField, kindField, textField(schemaNamePattern)),
  value: { encode: (text) => Buffer.from(text), decode: (bytes) => bytes.toString('utf8') },
};
