import type { BroadcastDocument, BroadcastMailDocument, BroadcastRefusalDocument } from '../broadcast.ts';
import type { DeadLetterDocument } from '../dead-letter.ts';
import type { WaitingMailDocument } from '../mail.ts';
import type { ListColumns } from './column.ts';

export const queuedMailColumns = [
  { name: 'mail_id' },
  { name: 'name' },
  { name: 'accepted_at' },
  { name: 'expires_at' },
  { name: 'fetch_count' },
  { name: 'requeue_count' },
] as const satisfies ListColumns<WaitingMailDocument>;

export const delayedMailColumns = [
  { name: 'mail_id' },
  { name: 'name' },
  { name: 'deliver_at' },
] as const satisfies ListColumns<WaitingMailDocument>;

export const deadLetterColumns = [
  { name: 'mail_id' },
  { name: 'name', label: 'Mail' },
  { name: 'device_id', label: 'Device', kind: 'id' },
  { name: 'reason', label: 'Reason' },
  { name: 'payload_bytes', label: 'Size', kind: 'bytes', isLesser: true },
  { name: 'died_at', label: 'Died', kind: 'time' },
] as const satisfies ListColumns<DeadLetterDocument>;

/** Whom a broadcast is for. */
export function targetText({ to }: Pick<BroadcastDocument, 'to'>): string {
  if (to.devices !== undefined) return `${to.devices.toLocaleString('en')} listed`;
  const { tag, id_prefix, name_prefix, enabled, state, seen_after, seen_before } = to;
  const { silent_after, refused, waiting_before } = to;
  const conditions = [
    tag && `tag ${tag.join(', ')}`,
    id_prefix && `id ${id_prefix}…`,
    name_prefix && `name ${name_prefix}…`,
    enabled !== undefined && (enabled ? 'enabled' : 'disabled'),
    state,
    seen_after && `seen after ${seen_after}`,
    seen_before && `seen before ${seen_before}`,
    silent_after && `silent since ${silent_after}`,
    refused && `refused: ${refused.replaceAll('_', ' ')}`,
    waiting_before && `mail waits since before ${waiting_before}`,
  ];
  return conditions.filter(Boolean).join('; ') || 'all devices';
}

export const broadcastColumns = [
  { name: 'broadcast_id' },
  { name: 'name', label: 'Mail' },
  { name: 'to', label: 'To', value: targetText, isLesser: true },
  { name: 'state', label: 'State', kind: 'word' },
  { name: 'queued', label: 'What became of it', kind: 'word' },
  { name: 'refused' },
  { name: 'created_at', label: 'Begun', kind: 'time', isLesser: true },
] as const satisfies ListColumns<BroadcastDocument>;

export const broadcastMailColumns = [
  { name: 'device_id' },
  { name: 'state' },
  { name: 'fetch_count' },
  { name: 'mail_id' },
] as const satisfies ListColumns<BroadcastMailDocument>;

export const broadcastRefusalColumns = [
  { name: 'device_id' },
  { name: 'reason' },
] as const satisfies ListColumns<BroadcastRefusalDocument>;
