import { errorAnswers, fleetPath } from '../../contract/document.ts';
import { type AttentionItem, attentionDocument, attentionItem } from '../../contract/insight/attention.ts';
import type { ShownAction } from '../../features/actions/service.ts';
import type { ConsumerStatus } from '../../features/consumers/service.ts';
import type { ForwarderStatus } from '../../features/forwarders/service.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';
import type { Turn } from '../request/turn.ts';
import { listDeadLetters } from '../routes/dead-letter-list.ts';
import type { DeviceCounts } from './device-counts.ts';
import { attentionToMailboxes } from './stuck.ts';

const dayMs = 86_400_000;
/** Bounds of one count of dead letters; beyond, it says that there are more. */
const lettersMax = 10_000;
const lettersPerPage = 1_000;
const countMsMax = 200;
/** Lag of which a reader that works does not have so much. */
const positionsBehindMax = 10_000;
const secondsBehindMax = 600;

/** Counts the dead letters of the last day, up to the bounds. */
async function countLetters(
  { shards }: AdminContext,
  fleetId: string,
  nowMs: number,
  turn: Turn,
): Promise<{ count: number; isAll: boolean }> {
  const untilMs = performance.now() + countMsMax;
  let count = 0;
  let after = '';
  while (count < lettersMax && performance.now() < untilMs) {
    const filter = { fromMs: nowMs - dayMs };
    const { items, next } = await listDeadLetters(shards.all, fleetId, filter, after, lettersPerPage, turn);
    count += items.length;
    if (next === null) return { count, isAll: true };
    after = next;
  }
  return { count, isAll: false };
}

function ofLetters({ count, isAll }: { count: number; isAll: boolean }): AttentionItem[] {
  if (count === 0) return [];
  const number = isAll ? String(count) : `${count} or more`;
  const sentence = `${number} ${count === 1 ? 'mail' : 'mails'} died in the last 24 hours.`;
  return [attentionItem('dead_letters', sentence, { count })];
}

const heldSentences: Readonly<Record<NonNullable<ShownAction['held']>, string>> = {
  dead_letters_full: 'it has too many dead letters',
  devices_full: 'it is behind for too many devices',
  limited: 'it has reached its rate',
  server_held: 'the server holds them back until it is released',
  disk_full: 'the disk or the map of its journal is full',
};

function ofAction({ action, held, behind, lost, deadLetters, devicesBlocked }: ShownAction): AttentionItem[] {
  const { name, enabled } = action;
  const found: AttentionItem[] = [];
  if (held !== undefined && enabled) {
    const sentence = `The action ${name} takes no records: ${heldSentences[held]}.`;
    found.push(attentionItem('action_held', sentence, { name }));
  }
  if (devicesBlocked > 0 && held !== 'dead_letters_full') {
    const devices = devicesBlocked === 1 ? '1 device waits' : `${devicesBlocked} devices wait`;
    const sentence = `The action ${name} runs, but ${devices} until some of their dead letters are replayed or dropped.`;
    found.push(attentionItem('action_devices_blocked', sentence, { name, count: devicesBlocked }));
  }
  if (enabled && behind > positionsBehindMax) {
    const sentence = `The action ${name} is ${behind} positions of the logs behind.`;
    found.push(attentionItem('action_behind', sentence, { name, count: behind }));
  }
  if (lost > 0) found.push(lostOf('action', name, lost));
  if (deadLetters > 0) found.push(deadOf('action', name, deadLetters));
  return found;
}

function ofForwarder(status: ForwarderStatus): AttentionItem[] {
  const { forwarder, state, behind, lost, deadLetters, lastError } = status;
  const { name } = forwarder;
  const found: AttentionItem[] = [];
  if (state === 'backing_off' || state === 'dead_letters_full') {
    const why =
      state === 'dead_letters_full'
        ? 'it has too many dead letters'
        : (lastError?.msg ?? 'an attempt failed');
    // The words of a receiver or a library may be a sentence already.
    const sentence = `The forwarder ${name} delivers nothing now: ${why.replace(/[.\s]+$/, '')}.`;
    found.push(attentionItem('forwarder_held', sentence, { name }));
  }
  if (state !== 'paused' && behind > positionsBehindMax) {
    const sentence = `The forwarder ${name} is ${behind} positions of the logs behind.`;
    found.push(attentionItem('forwarder_behind', sentence, { name, count: behind }));
  }
  if (lost > 0) found.push(lostOf('forwarder', name, lost));
  if (deadLetters > 0) found.push(deadOf('forwarder', name, deadLetters));
  return found;
}

function ofConsumer({ name, enabled, shards }: ConsumerStatus): AttentionItem[] {
  const found: AttentionItem[] = [];
  const lost = shards.reduce((sum, one) => sum + one.lost, 0);
  const seconds = Math.floor(Math.max(0, ...shards.map(({ secondsBehind }) => secondsBehind)));
  if (enabled && seconds > secondsBehindMax) {
    const sentence = `The consumer ${name} is ${Math.floor(seconds / 60)} minutes behind.`;
    found.push(attentionItem('consumer_behind', sentence, { name, count: seconds }));
  }
  if (lost > 0) found.push(lostOf('consumer', name, lost));
  return found;
}

function lostOf(what: 'action' | 'forwarder' | 'consumer', name: string, count: number): AttentionItem {
  const sentence = `The ${what} ${name} has lost ${count} positions of the logs: retention removed them before it read them.`;
  return attentionItem(`${what}_lost`, sentence, { name, count });
}

function deadOf(what: 'action' | 'forwarder', name: string, count: number): AttentionItem {
  const sentence = `The ${what} ${name} has ${count} dead ${count === 1 ? 'letter' : 'letters'}.`;
  return attentionItem(`${what}_dead_letters`, sentence, { name, count });
}

const showing = {
  summary: 'List what needs attention in a fleet',
  description:
    'Reasons why the server is not ready, mailboxes that have had the same mail at their head for longer than `stuckSeconds` (up to three by name, else their number and the longest), devices among the eight that wait longest that fetch their head again and again without an answer, dead letters of the last 24 hours, and actions, forwarders and consumers that are held, behind, or have lost records. From numbers that are already there: it is cheap to ask every few seconds.',
  params: fleetPath,
  response: { 200: attentionDocument, ...errorAnswers },
};

const showAttention =
  (context: AdminContext, counts: DeviceCounts): Handler<typeof showing> =>
  async ({ params, turn }) => {
    const { actionWork, config, consumers, forwarderWork, notReady, registry, shards } = context;
    const { fleetId } = registry.fleet(params.fleet_id).fleet;
    const { stuckSeconds } = config.settings.current;
    const nowMs = Date.now();
    const [mailboxes, letters, ownActions, ownForwarders, ownConsumers] = await Promise.all([
      attentionToMailboxes(shards, counts, { fleetId, stuckSeconds, nowMs }, turn),
      countLetters(context, fleetId, nowMs, turn),
      actionWork.list(fleetId),
      forwarderWork.list(fleetId),
      consumers.list(fleetId),
    ]);
    const items: AttentionItem[] = [
      ...notReady().map(({ msg }) => attentionItem('server', msg)),
      ...mailboxes,
      ...ofLetters(letters),
      ...ownActions.flatMap(ofAction),
      ...ownForwarders.flatMap(ofForwarder),
      ...ownConsumers.flatMap(ofConsumer),
    ];
    return { time: timeTextOf(nowMs), stuck_seconds: stuckSeconds, items };
  };

/** Adds `/fleets/{fleet_id}/attention`. */
export function addAttentionRoute(app: AdminApp, context: AdminContext, counts: DeviceCounts): void {
  routesOf(app)('GET', '/fleets/:fleet_id/attention', 'read', showing, showAttention(context, counts));
}
