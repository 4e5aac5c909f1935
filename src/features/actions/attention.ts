import {
  type AttentionSource,
  attentionToReader,
  behindClause,
  deadClause,
  lostClause,
  positionsBehindMax,
  type ReaderTrouble,
} from '../../admin-api/request/attention-source.ts';
import type { AttentionItem } from '../../contract/monitoring/attention.ts';
import type { ActionWork, ShownAction } from './action-work.ts';

const heldSentences: Readonly<Record<NonNullable<ShownAction['held']>, string>> = {
  dead_letters_full: 'it has too many dead letters',
  filter_disabled: 'its payload filter took too long to check: put it again with a cheaper one',
  devices_full: 'it is behind for too many devices',
  limited: 'it has reached its rate',
  server_held: 'the server holds them back until it is released',
  disk_full: 'the disk or the map of its journal is full',
};

function ofAction(status: ShownAction): AttentionItem[] {
  const { action, held, behind, secondsBehind, lost, deadLetters, devicesBlocked } = status;
  const { name, enabled } = action;
  const found: ReaderTrouble[] = [];
  if (held !== undefined && enabled)
    found.push({ kind: 'action_held', clause: `takes no records: ${heldSentences[held]}` });
  if (devicesBlocked > 0 && held !== 'dead_letters_full') {
    const devices = devicesBlocked === 1 ? '1 device waits' : `${devicesBlocked} devices wait`;
    const clause = `runs, but ${devices} until some of their dead letters are replayed or dropped`;
    found.push({ kind: 'action_devices_blocked', clause, count: devicesBlocked });
  }
  if (enabled && behind > positionsBehindMax) {
    const clause = behindClause({ seconds: secondsBehind, records: behind });
    found.push({ kind: 'action_behind', clause, count: behind });
  }
  if (lost > 0) found.push({ kind: 'action_lost', clause: lostClause(lost), count: lost });
  if (deadLetters > 0)
    found.push({ kind: 'action_dead_letters', clause: deadClause(deadLetters), count: deadLetters });
  return attentionToReader('action', name, found);
}

/** Lists actions that are held, behind, or have lost records or given up on some. */
export const attentionToActions =
  (actions: Pick<ActionWork, 'list'>): AttentionSource =>
  async (fleetId) =>
    (await actions.list(fleetId)).flatMap(ofAction);
