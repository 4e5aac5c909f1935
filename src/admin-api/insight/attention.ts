import { errorAnswers, fleetPath } from '../../contract/document.ts';
import { type AttentionItem, attentionDocument, attentionItem } from '../../contract/insight/attention.ts';
import type { NotReady } from '../../core/telemetry/readiness.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { AdminApiConfig } from '../config.ts';
import type { AttentionSource } from '../request/attention-source.ts';
import type { AdminApp, AllShards, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';
import type { Turn } from '../request/turn.ts';
import { listDeadLetters } from '../routes/dead-letter-list.ts';
import type { DeviceCounts } from './device-counts.ts';
import { attentionToMailboxes } from './stuck.ts';

interface Needs {
  config: AdminApiConfig;
  notReady(): readonly NotReady[];
  registry: Registry;
  shards: AllShards;
  /** The features that can want attention, in the order of the answer. */
  sources: readonly AttentionSource[];
}

const dayMs = 86_400_000;
/** Bounds of one count of dead letters; beyond, it says that there are more. */
const lettersMax = 10_000;
const lettersPerPage = 1_000;
const countMsMax = 200;

/** Counts the dead letters of the last day, up to the bounds. */
async function countLetters(
  { shards }: Needs,
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

const showing = {
  summary: 'List what needs attention in a fleet',
  description:
    'Reasons why the server is not ready, mailboxes that have had the same mail at their head for longer than `stuckSeconds` (up to three by name, else their number and the longest), devices among the eight that wait longest that fetch their head again and again without an answer, dead letters of the last 24 hours, and actions, forwarders and consumers that are held, behind, or have lost records. From numbers that are already there: it is cheap to ask every few seconds.',
  params: fleetPath,
  response: { 200: attentionDocument, ...errorAnswers },
};

const showAttention =
  (context: Needs, counts: DeviceCounts): Handler<typeof showing> =>
  async ({ params, turn }) => {
    const { config, notReady, registry, shards, sources } = context;
    const { fleetId } = registry.fleet(params.fleet_id).fleet;
    const { stuckSeconds } = config.settings.current;
    const nowMs = Date.now();
    const [mailboxes, letters, ...ofSources] = await Promise.all([
      attentionToMailboxes(shards, counts, { fleetId, stuckSeconds, nowMs }, turn),
      countLetters(context, fleetId, nowMs, turn),
      ...sources.map((attentionTo) => attentionTo(fleetId)),
    ]);
    const items: AttentionItem[] = [
      ...notReady().map(({ msg }) => attentionItem('server', msg)),
      ...mailboxes,
      ...ofLetters(letters),
      ...ofSources.flat(),
    ];
    return { time: timeTextOf(nowMs), stuck_seconds: stuckSeconds, items };
  };

/** Adds `/fleets/{fleet_id}/attention`. */
export function addAttentionRoute(app: AdminApp, context: Needs, counts: DeviceCounts): void {
  routesOf(app)('GET', '/fleets/:fleet_id/attention', 'read', showing, showAttention(context, counts));
}
