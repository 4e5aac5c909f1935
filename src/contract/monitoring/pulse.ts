import { type Static, Type } from 'typebox';
import { deviceId, time } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

const counts = (description: string) => Type.Array(Type.Integer(), { description });
const sampled = (description: string) =>
  Type.Array(Type.Unsafe<number | null>({ type: ['integer', 'null'] }), {
    description: `${description} Null where it was not counted.`,
  });

/** What a fleet did in the last hour, by columns: the members of all arrays are minutes. */
const pulseDocument = Type.Object({
  time,
  from: Type.String({ description: 'When the first minute began: an hour ago, or when this node started.' }),
  last_seconds: Type.Integer({ description: 'Seconds of the last minute that have passed.' }),
  heartbeats: counts('Requests that were accepted.'),
  datapoints: counts('Likewise.'),
  messages: counts('Likewise.'),
  mailbox: counts('Likewise.'),
  syncs: counts('Likewise, whatever they bring.'),
  other: counts('Likewise: streams, and whatever has no column.'),
  refused: counts('Requests of devices of the fleet that were refused.'),
  connected: sampled('Devices with an open event stream, once a minute.'),
  active: sampled('Devices seen within active_seconds, once a minute.'),
  busiest: Type.Array(Type.Object({ device_id: deviceId, requests_per_second: Type.Number() }), {
    description:
      'Devices with the most requests, as means of the last minute or less; where there are many, from samples.',
  }),
});
export type PulseDocument = Static<typeof pulseDocument>;

/** `/fleets/{fleet_id}/pulse`. */
export const pulseRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/pulse': {
    scope: 'read',
    summary: 'Show the last hour of a fleet',
    description:
      'Requests of the devices that call this node, by minute and kind, and how many devices there were. In memory, so from the start of the node on. Kept for 4,096 fleets: those with the latest traffic.',
    answers: { 200: pulseDocument },
  },
});
