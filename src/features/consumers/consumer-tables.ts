import { copyUuid, isUuid } from '../../core/uuid.ts';
import { type RecordKind, recordKinds } from '../../domain/records/record.ts';
import { packed, type ValueCodec } from '../../storage/tables/codec.ts';
import type { TableLayout } from '../../storage/tables/collection.ts';
import { fleetIdField, KeyCodec, textField } from '../../storage/tables/key-codec.ts';

/** A consumer without its cursors. */
export interface ConsumerDeclaration {
  id: Buffer;
  createdAtMs: number;
  kinds: readonly RecordKind[];
  schemas: readonly string[];
  leaseSeconds: number | undefined;
  /** False: paused. */
  enabled: boolean;
}

const declaration: ValueCodec<ConsumerDeclaration> = packed(
  ({ id, createdAtMs, kinds, schemas, enabled }) =>
    id !== undefined &&
    isUuid(id) &&
    Number.isFinite(createdAtMs) &&
    schemas?.every((one) => typeof one === 'string') === true &&
    kinds?.every((one) => recordKinds.includes(one)) === true &&
    // Absent in those stored before there were pauses.
    ['boolean', 'undefined'].includes(typeof enabled),
);

/** consumers: fleet, name. */
export const consumerTable: TableLayout<[fleetId: string, name: string], ConsumerDeclaration> = {
  name: 'consumers',
  key: new KeyCodec(fleetIdField, textField(/^[\w:-]+$/)),
  value: {
    encode: declaration.encode,
    decode: (bytes) => {
      const decoded = declaration.decode(bytes);
      const { id, leaseSeconds, enabled } = decoded;
      return {
        ...decoded,
        id: copyUuid(id),
        leaseSeconds: leaseSeconds ?? undefined,
        enabled: enabled ?? true,
      };
    },
  },
};
