import { nullable, wordOf } from '../document.ts';
import { type Static, Type } from '../type-builder.ts';

const kind = wordOf([
  'server',
  'dead_letters',
  'stuck_mailboxes',
  'never_answers',
  'action_held',
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
const attentionItem = Type.Object({
  kind,
  name: nullable('string', { description: 'The action, forwarder or consumer.' }),
  device_id: nullable('string', { description: 'The device, if it is about one.' }),
  count: nullable('integer', { description: 'How many there are, where they are counted.' }),
  sentence: Type.String(),
});
export type AttentionItem = Static<typeof attentionItem>;

/** What an operator of a fleet should look at. */
export const attentionDocument = Type.Object({
  time: Type.String(),
  stuck_seconds: Type.Integer({
    description: 'How long a mailbox may have the same mail at its head before it counts as stuck.',
  }),
  items: Type.Array(attentionItem, { description: 'Empty if nothing needs attention.' }),
});
export type AttentionDocument = Static<typeof attentionDocument>;
