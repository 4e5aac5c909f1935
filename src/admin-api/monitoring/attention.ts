import type { LetterCountDocument } from '../../contract/dead-letter.ts';
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
import { countDeadLetters } from './dead-letter-count.ts';
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
function ofLetters({ letters: count, is_all: isAll }: LetterCountDocument): AttentionItem[] {
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
        countDeadLetters(shards.all, fleetId, { fromMs: nowMs - dayMs }, turn),
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
