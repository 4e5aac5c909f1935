import { type Static, Type } from 'typebox';
import { nullable, wordOf } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

const kind = wordOf([
  'server',
  'many_devices_silent',
  'devices_refused',
  'devices_silent',
  'dead_letters',
  'stuck_mailboxes',
  'offline_mailboxes',
  'never_answers',
  'action_held',
  'action_devices_blocked',
  'action_behind',
  'action_lost',
  'action_dead_letters',
  'forwarder_held',
  'forwarder_behind',
  'forwarder_lost',
  'forwarder_dead_letters',
  'consumer_behind',
  'consumer_lost',
]);
const itemDocument = Type.Object({
  kind,
  also: Type.Array(kind, { description: 'What else holds of the same action, forwarder or consumer.' }),
  name: nullable('string', { description: 'The action, forwarder or consumer.' }),
  device_id: nullable('string', { description: 'The device, if it is about one.' }),
  count: nullable('integer', { description: 'How many there are, where they are counted.' }),
  is_all: Type.Boolean({ description: 'False if there may be more than were counted.' }),
  since: nullable('string', { description: 'Of devices that fell silent: when the first of them did.' }),
  sentence: Type.String(),
});
export type AttentionItem = Static<typeof itemDocument>;

/** An item with what is known of it besides its sentence. */
export function attentionItem(
  kind: AttentionItem['kind'],
  sentence: string,
  about: Partial<Pick<AttentionItem, 'name' | 'device_id' | 'count' | 'is_all' | 'since' | 'also'>> = {},
): AttentionItem {
  return {
    kind,
    also: [],
    name: null,
    device_id: null,
    count: null,
    is_all: true,
    since: null,
    ...about,
    sentence,
  };
}

/** Items that an operator of a fleet should look at. */
const attentionDocument = Type.Object({
  time: Type.String(),
  stuck_seconds: Type.Integer({
    description: 'How long a mailbox may have the same mail at its head before it counts as stuck.',
  }),
  active_seconds: Type.Integer({ description: 'Whoever was seen within this time calls.' }),
  items: Type.Array(itemDocument, { description: 'Empty if nothing needs attention.' }),
});
export type AttentionDocument = Static<typeof attentionDocument>;

/** `/fleets/{fleet_id}/attention`. */
export const attentionRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/attention': {
    scope: 'read',
    summary: 'List what needs attention in a fleet',
    description:
      'Reasons why the server is not ready, devices that fell silent within the last hour (else within the last day; `many_devices_silent` if they are ten or more, and a hundredth of the active ones), devices that this node refuses, mailboxes that have had the same mail at their head for longer than `stuckSeconds` (up to three by name, else their numbers and the longest; `offline_mailboxes` if the device does not call), devices among the eight that wait longest that fetch their head again and again without an answer, dead letters of the last 24 hours, and actions, forwarders and consumers that are held, behind, or have lost records. From numbers that are already there: it is cheap to ask every few seconds.',
    answers: { 200: attentionDocument },
  },
});
