/** Kinds that the requests of a fleet are counted by: those that are accepted, and all that are refused. */
export const pulseKinds = [
  'heartbeats',
  'datapoints',
  'messages',
  'mailbox',
  'syncs',
  'other',
  'refused',
] as const;
export type PulseKind = (typeof pulseKinds)[number];
