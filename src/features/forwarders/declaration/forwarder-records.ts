import { fleetIdPattern, schemaNamePattern } from '../../../core/identity.ts';
import { parseUuid } from '../../../core/uuid.ts';
import type { Forwarder } from './forwarder.ts';

/** Key in the registry's environment: fleet id, name; those of a fleet are adjacent. */
export function keyOfForwarder(fleetId: string, name: string): Buffer {
  return Buffer.from(`${fleetId}${name}`, 'latin1');
}

export function packForwarder(forwarder: Forwarder): Buffer {
  return Buffer.from(JSON.stringify(forwarder));
}

/** @throws Error for an invalid value. */
export function unpackForwarder(bytes: Buffer): Forwarder {
  const forwarder = JSON.parse(bytes.toString('utf8')) as Partial<Forwarder>;
  const { secrets, destination } = forwarder;
  const isForwarder =
    parseUuid(forwarder.id ?? '') !== undefined &&
    fleetIdPattern.test(forwarder.fleetId ?? '') &&
    schemaNamePattern.test(forwarder.name ?? '') &&
    typeof forwarder.createdAtMs === 'number' &&
    typeof forwarder.enabled === 'boolean' &&
    typeof forwarder.filter === 'object' &&
    ['batchRecordsMax', 'lingerMilliseconds', 'timeoutSeconds'].every((key) =>
      Number.isInteger(forwarder[key as 'batchRecordsMax']),
    ) &&
    (destination?.type === 'webhook' || destination?.type === 'nats') &&
    Array.isArray(secrets?.signing) &&
    Array.isArray(secrets.headers) &&
    typeof secrets.tls === 'object';
  if (!isForwarder) throw new Error('not a forwarder');
  return forwarder as Forwarder;
}
