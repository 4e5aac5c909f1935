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
import { type AttentionSource, countedText } from '../request/attention-source.ts';
import { activeMsOf } from '../request/device-state.ts';
import type { Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import { countDeadLetters } from './dead-letter-count.ts';
import type { DeviceCounts } from './device-counts.ts';
import type { FleetRefusals } from './fleet-refusals.ts';
import { SilentDevices } from './silent-devices.ts';
import { attentionToMailboxes } from './stuck.ts';

interface Parts {
  config: AdminApiConfig;
  notReady(): readonly NotReady[];
  registry: Registry;
  shards: Shards;
  refused: FleetRefusals;
  /** The features that can want attention, in the order of the answer. */
  sources: readonly AttentionSource[];
}

const dayMs = 86_400_000;

function ofLetters({ letters: count, is_all: isAll }: LetterCountDocument): AttentionItem[] {
  if (count === 0) return [];
  const number = countedText(count, isAll);
  const sentence = `${number} ${count === 1 ? 'mail' : 'mails'} died in the last 24 hours.`;
  return [attentionItem('dead_letters', sentence, { count, is_all: isAll })];
}

/** Handles `/fleets/{fleet_id}/attention`. */
export function attentionHandlers(parts: Parts, counts: DeviceCounts): Handlers<typeof attentionRoutes> {
  const { config, notReady, refused, registry, shards, sources } = parts;
  const silent = new SilentDevices(parts, counts);
  return {
    'GET /fleets/{fleet_id}/attention': async ({ params, turn }) => {
      const { fleet } = registry.fleet(params.fleet_id);
      const { fleetId } = fleet;
      const { stuckSeconds } = config.settings.current;
      const activeMs = activeMsOf(fleet, config);
      const nowMs = Date.now();
      const [silence, refusals, calling, mailboxes, letters, ...ofSources] = await Promise.all([
        silent.attention(fleet),
        refused.attention(fleetId),
        refused.callingIds(fleetId, nowMs - activeMs),
        attentionToMailboxes(shards, counts, { fleetId, stuckSeconds, activeMs, nowMs }, turn),
        countDeadLetters(shards.all, fleetId, { fromMs: nowMs - dayMs }, turn),
        ...sources.map((attentionTo) => attentionTo(fleetId)),
      ]);
      const items: AttentionItem[] = [
        ...notReady().map(({ msg }) => attentionItem('server', msg)),
        ...silence.filter(({ kind }) => kind === 'many_devices_silent'),
        ...refusals,
        // A device that calls in vain is named as one that is refused, and not as one that does not call.
        ...mailboxes.filter(
          ({ kind, device_id: id }) => kind !== 'offline_mailboxes' || id === null || !calling.includes(id),
        ),
        ...silence.filter(({ kind }) => kind === 'devices_silent'),
        ...ofLetters(letters),
        ...ofSources.flat(),
      ];
      return {
        time: timeTextOf(nowMs),
        stuck_seconds: stuckSeconds,
        active_seconds: activeMs / 1_000,
        items,
      };
    },
  };
}
