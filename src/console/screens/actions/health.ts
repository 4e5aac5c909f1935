import type { ActionDocument } from '../../../contract/action.ts';

/** State of an action in one word, and what to do about it. */
export interface ActionHealth {
  /** Class of its mark. */
  mark: 'disabled' | 'bad' | 'warn' | 'active';
  word: string;
  /** Says what is wrong, and what to do; undefined if nothing is. */
  advice: string | undefined;
}

/** More positions than this are not those of the last moments; the server calls it behind from there on too. */
const behindMax = 10_000;

const heldAdvice: Readonly<Record<NonNullable<ActionDocument['held']>, readonly [string, string]>> = {
  dead_letters_full: [
    'too many dead letters',
    'It takes no records: it has as many dead letters as it may. Replay or drop some.',
  ],
  filter_disabled: [
    'filter disabled',
    'It takes no records: a check of its payload filter took too long. Deploy it with a cheaper one; it goes on where it was.',
  ],
  devices_full: [
    'too many devices behind',
    'It takes no records: a hundred devices wait at a place of their own. Look at their dead letters and mailboxes.',
  ],
  limited: [
    'rate limit',
    'It has reached its runs a second; the rest waits in the log. If it answers its own mail through a device, break that loop.',
  ],
  disk_full: ['disk full', 'It takes no records: the store takes no writes. Make room.'],
  server_held: ['server held', 'It takes no records: the server holds all actions until it is released.'],
};

/** The worst that is to be said of an action. */
export function actionHealth(action: ActionDocument): ActionHealth {
  const { enabled, held, failures, behind, last_error, dead_letters, devices_behind, devices_blocked } =
    action;
  if (!enabled)
    return { mark: 'disabled', word: 'disabled', advice: 'It takes no notice of what is stored meanwhile.' };
  if (held !== null) {
    const [word, advice] = heldAdvice[held];
    return { mark: 'bad', word: `held: ${word}`, advice };
  }
  if (devices_blocked > 0)
    return {
      mark: 'warn',
      word: 'devices wait',
      advice: `It runs, but records of ${countText(devices_blocked)} ${devices_blocked === 1 ? 'device wait' : 'devices wait'}: their dead letters have used their share. Replay or drop some.`,
    };
  if (failures > 0 && last_error !== null)
    return {
      mark: 'warn',
      word: 'failing',
      advice: `${countText(failures)} failed ${failures === 1 ? 'attempt' : 'attempts'} since the last that succeeded.`,
    };
  if (behind > behindMax)
    return {
      mark: 'warn',
      word: 'behind',
      advice: `${countText(behind)} positions of the logs are before it.`,
    };
  if (devices_behind > 0)
    return {
      mark: 'warn',
      word: 'devices wait',
      advice: `Records of ${countText(devices_behind)} devices wait while those of others pass.`,
    };
  if (dead_letters > 0)
    return {
      mark: 'warn',
      word: 'dead letters',
      advice: `${countText(dead_letters)} ${dead_letters === 1 ? 'run has' : 'runs have'} failed for good.`,
    };
  return { mark: 'active', word: 'running', advice: undefined };
}

/** A number as it is shown. */
export function countText(one: number): string {
  return one.toLocaleString('en');
}
