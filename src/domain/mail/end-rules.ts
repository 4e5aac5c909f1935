import type { DeathReason, MailEnd } from './ended-mail.ts';
import { deathReasons } from './mail-fields.ts';

const deaths: ReadonlySet<MailEnd> = new Set(deathReasons);

/** True if a mail with this end becomes a dead letter (D16). Each end leaves a receipt (D17). */
export function isDeath(end: MailEnd): end is DeathReason {
  return deaths.has(end);
}

/** Letters removed at most for each new one: a lowered limit is reached step by step. */
export const dropsPerLetter = 2;

/** How many of a fleet's oldest letters go when one is added (D16), itself counted: those whose mail was sent first. */
export function droppedLetters(letters: number, perFleetMax: number): number {
  return Math.min(Math.max(letters - perFleetMax, 0), dropsPerLetter);
}
