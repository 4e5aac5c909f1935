import {
  type AttentionSource,
  deadOf,
  lostOf,
  positionsBehindMax,
} from '../../admin-api/request/attention-source.ts';
import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';
import type { ActionWork, ShownAction } from './action-work.ts';

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

/** Lists actions that are held, behind, or have lost records or given up on some. */
export const attentionToActions =
  (actions: Pick<ActionWork, 'list'>): AttentionSource =>
  async (fleetId) =>
    (await actions.list(fleetId)).flatMap(ofAction);
