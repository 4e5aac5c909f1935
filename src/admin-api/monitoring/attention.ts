import {
  type AttentionItem,
  attentionItem,
  type attentionRoutes,
} from '../../contract/monitoring/attention.ts';
import type { NotReady } from '../../core/telemetry/readiness.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Shards } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import type { AttentionSource } from '../request/attention-source.ts';
import type { Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import type { Turn } from '../request/turn.ts';
import { listDeadLetters } from '../routes/dead-letter-list.ts';
import type { DeviceCounts } from './device-counts.ts';
import { attentionToMailboxes } from './stuck.ts';

interface Parts {
  config: AdminApiConfig;
  notReady(): readonly NotReady[];
  registry: Registry;
  shards: Shards;
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
  { shards }: Parts,
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

/** Handles `/fleets/{fleet_id}/attention`. */
export function attentionHandlers(parts: Parts, counts: DeviceCounts): Handlers<typeof attentionRoutes> {
  const { config, notReady, registry, shards, sources } = parts;
  return {
    'GET /fleets/{fleet_id}/attention': async ({ params, turn }) => {
      const { fleetId } = registry.fleet(params.fleet_id).fleet;
      const { stuckSeconds } = config.settings.current;
      const nowMs = Date.now();
      const [mailboxes, letters, ...ofSources] = await Promise.all([
        attentionToMailboxes(shards, counts, { fleetId, stuckSeconds, nowMs }, turn),
        countLetters(parts, fleetId, nowMs, turn),
        ...sources.map((attentionTo) => attentionTo(fleetId)),
      ]);
      const items: AttentionItem[] = [
        ...notReady().map(({ msg }) => attentionItem('server', msg)),
        ...mailboxes,
        ...ofLetters(letters),
        ...ofSources.flat(),
      ];
      return { time: timeTextOf(nowMs), stuck_seconds: stuckSeconds, items };
    },
  };
}
