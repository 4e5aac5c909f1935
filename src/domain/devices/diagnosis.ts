import { addressText } from '../../core/address.ts';
import { plainText } from '../../core/plain-text.ts';
import { durationText } from '../duration-text.ts';
import type { Mail } from '../mail/mail.ts';
import { callsMs, isCurrent, limitedShare } from './current-refusals.ts';
import type { Refusal } from './refusals.ts';

/** A mail may be fetched in vain for so long by a device that works. */
export const patienceMs = 60_000;
/** A mail may be in the hands of a device that works for so long, or wait while it works on something else. */
const workMs = 600_000;
/** Fetches of the head without an answer, and requeues of every mail, that are no coincidence. */
const fetchesMin = 3;
const requeuesMin = 3;

/** Why a device may be stuck; the words of the API. */
export const diagnosisKinds = [
  'disabled',
  'locked_out',
  'wrong_secret',
  'schema_mismatch',
  'rate_limited',
  'refused',
  'never_seen',
  'mailbox_full',
  'requeues_all',
  'never_answers',
  'never_fetches',
  'offline',
  'silent',
  'delayed',
  'ok',
] as const;
export type DiagnosisKind = (typeof diagnosisKinds)[number];

/** One thing that is wrong, in a sentence. */
export interface Finding {
  kind: DiagnosisKind;
  sentence: string;
}

/** Everything that the sentence follows from. */
export interface DiagnosisInput {
  nowMs: number;
  enabled: boolean;
  createdAtMs: number;
  state: 'connected' | 'active' | 'offline';
  /** How long after its last call it is offline. */
  activeMs: number;
  lastSeenMs: number | undefined;
  /** As text. */
  lastAddress: string | undefined;
  mailboxSize: number;
  mailboxMailsMax: number;
  /** The time since which the first mail is the first one; undefined without mail. */
  waitingSinceMs: number | undefined;
  /** The first mails of its mailbox, head first. */
  mails: readonly Pick<
    Mail,
    'name' | 'acceptedAtMs' | 'expiresAtMs' | 'fetchCount' | 'firstFetchedAtMs' | 'requeueCount'
  >[];
  delayedMails: number;
  nextDeliveryMs: number | undefined;
  refusals: readonly Refusal[];
  lockouts: readonly { address: string; untilMs: number }[];
}

/**
 * Returns what is wrong with a device, what explains most first; that nothing is if so. What follows from an earlier
 * finding is left out: of a device that is refused, "has never called" would be another reason, and a wrong one.
 */
export function diagnose(input: DiagnosisInput): Finding[] {
  const found: Finding[] = [];
  for (const [kind, rule] of rules) {
    if (found.some((earlier) => follows[earlier.kind]?.includes(kind))) continue;
    const sentence = rule(input);
    if (sentence !== undefined) found.push({ kind, sentence });
  }
  return found.length > 0 ? found : [{ kind: 'ok', sentence: wellOf(input) }];
}

const ofSilence: readonly DiagnosisKind[] = ['never_seen', 'offline', 'silent'];
/** What a device is found not to do because it does not get in. */
const ofAbsence: readonly DiagnosisKind[] = [...ofSilence, 'requeues_all', 'never_answers', 'never_fetches'];
const ofRefusal: readonly DiagnosisKind[] = ['schema_mismatch', 'rate_limited', 'refused'];

/** What follows from each finding. */
const follows: Partial<Record<DiagnosisKind, readonly DiagnosisKind[]>> = {
  disabled: ['locked_out', 'wrong_secret', ...ofRefusal, ...ofAbsence],
  locked_out: ['wrong_secret', ...ofRefusal, ...ofAbsence],
  wrong_secret: [...ofRefusal, ...ofAbsence],
  schema_mismatch: ['schema_mismatch', ...ofSilence],
  rate_limited: ofSilence,
  refused: ['refused', ...ofSilence],
};

type Rule = (input: DiagnosisInput) => string | undefined;

/**
 * Ordered by how much they explain: whoever is refused does not fetch either. What was refused longer ago comes behind
 * what holds now.
 */
const rules: readonly [DiagnosisKind, Rule][] = [
  [
    'disabled',
    ({ enabled }) => (enabled ? undefined : 'Is disabled: every call is refused until it is enabled.'),
  ],
  ['locked_out', lockedOut],
  ['wrong_secret', wrongSecret],
  ['schema_mismatch', ofCalling(schemaMismatch)],
  ['rate_limited', rateLimited],
  ['refused', ofCalling(otherRefusal)],
  ['never_seen', neverSeen],
  ['mailbox_full', mailboxFull],
  ['offline', offlineWithMail],
  ['silent', silent],
  ['requeues_all', requeuesAll],
  ['never_answers', neverAnswers],
  ['never_fetches', neverFetches],
  ['schema_mismatch', schemaMismatch],
  ['refused', otherRefusal],
  ['delayed', onlyDelayed],
];

/** A rule of what was refused within the last minutes, or to a device of which nothing was ever accepted. */
function ofCalling(rule: Rule): Rule {
  return (input) => {
    const { refusals, lastSeenMs, nowMs } = input;
    const calling = refusals.filter(({ lastMs }) => lastSeenMs === undefined || nowMs - lastMs <= callsMs);
    return rule({ ...input, refusals: calling });
  };
}

function lockedOut({ lockouts, nowMs }: DiagnosisInput): string | undefined {
  const [first, ...others] = lockouts.toSorted((a, b) => b.untilMs - a.untilMs);
  if (first === undefined) return undefined;
  const more =
    others.length === 0 ? '' : ` and ${counted(others.length, 'other address', 'other addresses')}`;
  return `Is locked out for ${durationText(first.untilMs - nowMs)} after wrong secrets from ${first.address}${more}.`;
}

function wrongSecret({ refusals, nowMs, lastSeenMs = 0 }: DiagnosisInput): string | undefined {
  const refusal = refusals.find(({ detail }) => detail === 'device_secret_incorrect');
  // It has called with the right one since.
  if (refusal === undefined || refusal.lastMs < lastSeenMs) return undefined;
  const { firstMs, lastMs, lastAddress, count } = refusal;
  const from = lastAddress === undefined ? '' : ` from ${addressText(lastAddress)}`;
  const sentence = `${isRefused(refusal, nowMs)}: wrong secret, last tried ${ago(lastMs, nowMs)}${from}`;
  return count === 1 ? `${sentence}.` : `${sentence}; ${times(count)} since ${ago(firstMs, nowMs)}.`;
}

function schemaMismatch({ refusals, nowMs }: DiagnosisInput): string | undefined {
  const refusal = refusals.find((one) => one.code === 'schema_mismatch' && isCurrent(one, nowMs));
  if (refusal === undefined) return undefined;
  const { route, name = '', error, count, lastMs } = refusal;
  const kind = route.includes('/datapoint/') ? 'datapoints' : 'messages';
  const not = nowMs - lastMs <= callsMs ? 'do not match' : 'did not match';
  const where = error === undefined ? '' : `: ${plainText(`${error.path || 'the whole'} ${error.msg}`)}`;
  return `${isRefused(refusal, nowMs)}: its ${kind} ${not} schema ${name}${where} (${times(count)}, last ${ago(lastMs, nowMs)}).`;
}

function rateLimited({ refusals, nowMs }: DiagnosisInput): string | undefined {
  const refusal = refusals.find(({ code }) => code === 'rate_limited');
  const share = refusal && limitedShare(refusal, nowMs);
  if (refusal === undefined || share === undefined) return undefined;
  const percent = Math.floor(100 * share);
  return `Calls too often: ${percent} % of its requests in the last minutes were refused, last ${ago(refusal.lastMs, nowMs)}. ${plainText(refusal.msg)}`;
}

/** Codes that have a rule of their own, or are of senders of mail. */
const explained: readonly string[] = [
  'schema_mismatch',
  'unauthorized',
  'mailbox_full',
  'fleet_mail_full',
  'limit_reached',
];

function otherRefusal(input: DiagnosisInput): string | undefined {
  const { refusals, nowMs } = input;
  const known = rateLimited(input) === undefined ? explained : [...explained, 'rate_limited'];
  const refusal = refusals.find((one) => !known.includes(one.code) && isCurrent(one, nowMs));
  if (refusal === undefined) return undefined;
  const { route, code, msg, count, lastMs } = refusal;
  return `${isRefused(refusal, nowMs)} at ${route}: ${code}, ${times(count)}, last ${ago(lastMs, nowMs)}. ${plainText(msg)}`;
}

function neverSeen({ lastSeenMs, state, createdAtMs, nowMs }: DiagnosisInput): string | undefined {
  // Its first call opens a stream before the time of it is written.
  if (lastSeenMs !== undefined || state !== 'offline') return undefined;
  return `Has never called. It was created ${ago(createdAtMs, nowMs)}.`;
}

function mailboxFull({ mailboxSize, mailboxMailsMax, refusals, nowMs }: DiagnosisInput): string | undefined {
  if (mailboxSize === 0 || mailboxSize < mailboxMailsMax) return undefined;
  const refused = refusals.filter(({ code }) => code === 'mailbox_full');
  const count = refused.reduce((sum, one) => sum + one.count, 0);
  const waiting = `Full: ${counted(mailboxSize, 'mail waits', 'mails wait')}`;
  if (count === 0) return `${waiting}, and the next will be refused.`;
  const firstMs = Math.min(...refused.map((one) => one.firstMs));
  return `${waiting}, and ${counted(count, 'was', 'were')} refused since ${ago(firstMs, nowMs)}.`;
}

function requeuesAll({ mails, mailboxSize, state }: DiagnosisInput): string | undefined {
  const least = Math.min(...mails.map(({ requeueCount }) => requeueCount));
  if (mails.length === 0 || least < requeuesMin) return undefined;
  const some = mails.length < mailboxSize ? `the first ${mails.length}` : `${mails.length}`;
  const requeues = state === 'offline' ? 'Requeued' : 'Requeues';
  return mails.length === 1
    ? `${requeues} its mail: it went round ${least} times.`
    : `${requeues} everything: each of ${some} mails went round ${least} times or more.`;
}

function neverAnswers(input: DiagnosisInput): string | undefined {
  const {
    mails: [head],
    state,
    waitingSinceMs,
    nowMs,
  } = input;
  if (head === undefined || head.fetchCount === 0 || head.requeueCount > 0) return undefined;
  const vain = fetchedInVain(head, nowMs);
  if (vain !== undefined && state === 'offline')
    return `Fetched ${head.name} ${times(head.fetchCount)}, and did not answer.`;
  if (vain !== undefined) return `Fetches ${vain}${behindIt(input)}.`;
  const firstMs = head.firstFetchedAtMs ?? waitingSinceMs ?? nowMs;
  if (state === 'offline' || nowMs - firstMs < workMs) return undefined;
  return `Calls, and has ${head.name} in hand since ${ago(firstMs, nowMs)}, without an answer: has what works on it failed?`;
}

/** Says how much mail the head of the mailbox holds up. */
function behindIt({ mailboxSize }: DiagnosisInput): string {
  return mailboxSize < 2 ? '' : `; ${counted(mailboxSize - 1, 'mail waits', 'mails wait')} behind it`;
}

/** Says how a mail is fetched again and again without an answer, as in "the device fetches …"; undefined if it is not. */
export function fetchedInVain(
  { name, fetchCount, firstFetchedAtMs, requeueCount }: DiagnosisInput['mails'][number],
  nowMs: number,
): string | undefined {
  if (fetchCount < fetchesMin || requeueCount > 0 || firstFetchedAtMs === undefined) return undefined;
  if (nowMs - firstFetchedAtMs < patienceMs) return undefined;
  return `${name} again and again (${fetchCount} times, first ${ago(firstFetchedAtMs, nowMs)}) and never answers`;
}

function neverFetches(input: DiagnosisInput): string | undefined {
  const {
    mails: [head],
    state,
    lastSeenMs = 0,
    waitingSinceMs = input.nowMs,
    nowMs,
  } = input;
  if (head === undefined || head.fetchCount > 0 || nowMs - waitingSinceMs <= workMs) return undefined;
  const waited = durationText(nowMs - waitingSinceMs);
  if (state === 'connected') {
    return `Holds an event stream, but has not fetched ${head.name} in ${waited}: does its firmware act on new_mail?`;
  }
  // Its answers have said for so long that there is mail.
  if (lastSeenMs - waitingSinceMs <= workMs) return undefined;
  if (state === 'offline')
    return `Did not fetch ${head.name} when it last called: does its firmware look at X-Messages-Available?`;
  return `Calls, but has not fetched ${head.name} in ${waited}: does its firmware look at X-Messages-Available?`;
}

function offlineWithMail(input: DiagnosisInput): string | undefined {
  const { state, lastSeenMs, lastAddress, mailboxSize, mails, nowMs } = input;
  if (state !== 'offline' || lastSeenMs === undefined || mailboxSize === 0) return undefined;
  const from = lastAddress === undefined ? '' : ` from ${lastAddress}`;
  const firstExpiryMs = Math.min(...mails.map(({ expiresAtMs }) => expiresAtMs));
  const expiry = Number.isFinite(firstExpiryMs)
    ? `, the first expires in ${durationText(firstExpiryMs - nowMs)}`
    : '';
  return `Last called ${ago(lastSeenMs, nowMs)}${from}; ${counted(mailboxSize, 'mail waits', 'mails wait')}${expiry}.`;
}

function silent({
  state,
  lastSeenMs,
  lastAddress,
  activeMs,
  mailboxSize,
  nowMs,
}: DiagnosisInput): string | undefined {
  if (state !== 'offline' || lastSeenMs === undefined || mailboxSize > 0) return undefined;
  const from = lastAddress === undefined ? '' : ` from ${lastAddress}`;
  return `Fell silent ${ago(lastSeenMs + activeMs, nowMs)}: it last called ${ago(lastSeenMs, nowMs)}${from}; no mail waits.`;
}

function onlyDelayed(input: DiagnosisInput): string | undefined {
  const { mailboxSize, delayedMails, nextDeliveryMs, nowMs } = input;
  if (mailboxSize > 0 || delayedMails === 0 || nextDeliveryMs === undefined) return undefined;
  return `Nothing is due: the next of ${counted(delayedMails, 'delayed mail', 'delayed mails')} in ${durationText(nextDeliveryMs - nowMs)}.`;
}

function wellOf({ state, lastSeenMs, mailboxSize, nowMs }: DiagnosisInput): string {
  const mail = mailboxSize === 0 ? 'no mail waits' : counted(mailboxSize, 'mail waits', 'mails wait');
  if (state === 'connected') return `Connected; ${mail}.`;
  return `Last called ${ago(lastSeenMs ?? nowMs, nowMs)}; ${mail}.`;
}

/** Says of a device that is refused whether it is so now. */
function isRefused({ lastMs }: Refusal, nowMs: number): string {
  return nowMs - lastMs <= callsMs ? 'Calls, and is refused' : 'Called, and was refused';
}

function counted(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`;
}

function times(count: number): string {
  return counted(count, 'time', 'times');
}

function ago(timeMs: number, nowMs: number): string {
  return nowMs - timeMs < 1_000 ? 'just now' : `${durationText(nowMs - timeMs)} ago`;
}
