import { schemaNamePattern } from '../../../core/identity.ts';
import { parseUuid } from '../../../core/uuid.ts';
import { json } from '../../../storage/tables/codec.ts';
import type { TableLayout } from '../../../storage/tables/collection.ts';
import { fleetIdField, KeyCodec, textField } from '../../../storage/tables/key-codec.ts';
import { isDestinationType } from '../destinations/destinations.ts';
import type { Forwarder } from './forwarder.ts';

export type ForwarderName = [fleetId: string, name: string];

/** forwarders: fleet, name. In the store of declarations. */
export const forwarderTable: TableLayout<ForwarderName, Forwarder> = {
  name: 'forwarders',
  key: new KeyCodec(fleetIdField, textField(schemaNamePattern)),
  value: json((forwarder) => {
    const { secrets, destination } = forwarder;
    return (
      parseUuid(forwarder.id ?? '') !== undefined &&
      typeof forwarder.createdAtMs === 'number' &&
      forwarder.since?.every(Number.isSafeInteger) === true &&
      typeof forwarder.enabled === 'boolean' &&
      typeof forwarder.filter === 'object' &&
      ['batchRecordsMax', 'lingerMilliseconds', 'timeoutSeconds'].every((key) =>
        Number.isInteger(forwarder[key as 'batchRecordsMax']),
      ) &&
      isDestinationType(destination?.type) &&
      Array.isArray(secrets?.signing) &&
      Array.isArray(secrets.headers) &&
      typeof secrets.tls === 'object'
    );
  }),
  isOwn: ([fleetId, name], forwarder) => forwarder.fleetId === fleetId && forwarder.name === name,
};
