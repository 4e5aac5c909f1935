import { expect, it } from 'vitest';
import { type DiagnosisInput, diagnose } from '../../../src/domain/devices/diagnosis.ts';
import type { Refusal } from '../../../src/domain/devices/refusals.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const nowMs = Date.parse('2026-11-23T12:00:00Z');

const well: DiagnosisInput = {
  nowMs,
  enabled: true,
  createdAtMs: nowMs - 30 * day,
  state: 'active',
  activeMs: 5 * minute,
  lastSeenMs: nowMs - 2 * minute,
  lastAddress: '192.0.2.7',
  mailboxSize: 0,
  mailboxMailsMax: 100,
  waitingSinceMs: nowMs - 3 * hour,
  mails: [],
  delayedMails: 0,
  nextDeliveryMs: undefined,
  refusals: [],
  lockouts: [],
};

const mail = {
  name: 'lock_check',
  acceptedAtMs: nowMs - 3 * hour,
  expiresAtMs: nowMs + 4 * day,
  fetchCount: 0,
  firstFetchedAtMs: undefined,
  requeueCount: 0,
};

const refusal: Refusal = {
  route: 'POST /v1/heartbeat',
  code: 'unauthorized',
  msg: 'refused',
  count: 3,
  firstMs: nowMs - 2 * hour,
  lastMs: nowMs - minute,
};

function sentenceOf(change: Partial<DiagnosisInput>): string {
  const [first] = diagnose({ ...well, ...change });
  return `${first?.kind}: ${first?.sentence}`;
}

/** The table of docs: what is seen, and the sentence. */
const rows: [string, Partial<DiagnosisInput>, string][] = [
  ['well', {}, 'ok: Last called 2 min ago; no mail waits.'],
  ['connected', { state: 'connected', mailboxSize: 1 }, 'ok: Connected; 1 mail waits.'],
  ['disabled', { enabled: false }, 'disabled: Is disabled: every call is refused until it is enabled.'],
  [
    'never seen',
    { lastSeenMs: undefined, state: 'offline' },
    'never_seen: Has never called. It was created 30 d ago.',
  ],
  [
    'wrong secret',
    { lastSeenMs: undefined, refusals: [{ ...refusal, detail: 'device_secret_incorrect' }] },
    'wrong_secret: Calls, and is refused: wrong secret, last tried 1 min ago; 3 times since 2 h ago.',
  ],
  [
    'wrong secret, but silent since',
    {
      lastSeenMs: undefined,
      refusals: [{ ...refusal, detail: 'device_secret_incorrect', lastMs: nowMs - 20 * minute }],
    },
    'wrong_secret: Called, and was refused: wrong secret, last tried 20 min ago; 3 times since 2 h ago.',
  ],
  [
    'wrong secret, once, from where',
    {
      refusals: [
        {
          ...refusal,
          detail: 'device_secret_incorrect',
          count: 1,
          lastAddress: Uint8Array.of(192, 0, 2, 9),
        },
      ],
    },
    'wrong_secret: Calls, and is refused: wrong secret, last tried 1 min ago from 192.0.2.9.',
  ],
  [
    'locked out',
    { lockouts: [{ address: '192.0.2.7', untilMs: nowMs + 5 * minute }] },
    'locked_out: Is locked out for 5 min after wrong secrets from 192.0.2.7.',
  ],
  [
    'schema mismatch',
    {
      refusals: [
        {
          ...refusal,
          route: 'POST /v1/datapoint/:schema_name',
          name: 'climate',
          code: 'schema_mismatch',
          error: { path: '/celsius', msg: 'must be number' },
        },
      ],
    },
    'schema_mismatch: Calls, and is refused: its datapoints do not match schema climate: /celsius must be number (3 times, last 1 min ago).',
  ],
  [
    'over its rate, though the last request was accepted',
    {
      refusals: [
        {
          ...refusal,
          code: 'rate_limited',
          msg: 'Too many requests.',
          count: 1_736,
          acceptedMs: nowMs,
          requests: { limited: 1_736, accepted: 330 },
        },
      ],
    },
    'rate_limited: Calls too often: 84 % of its requests in the last minutes were refused, last 1 min ago. Too many requests.',
  ],
  [
    'refused otherwise',
    { refusals: [{ ...refusal, code: 'rate_limited', msg: 'Too many requests.' }] },
    'refused: Calls, and is refused at POST /v1/heartbeat: rate_limited, 3 times, last 1 min ago. Too many requests.',
  ],
  [
    'offline, mail waits',
    { state: 'offline', lastSeenMs: nowMs - 3 * day, mailboxSize: 4, mails: [mail] },
    'offline: Last called 3 d ago from 192.0.2.7; 4 mails wait, the first expires in 4 d.',
  ],
  [
    'seen, head never fetched',
    { mailboxSize: 1, mails: [mail] },
    'never_fetches: Calls, but has not fetched lock_check in 3 h: does its firmware look at X-Messages-Available?',
  ],
  [
    'offline, head never fetched though it called since',
    { state: 'offline', lastSeenMs: nowMs - hour, mailboxSize: 1, mails: [mail] },
    'offline: Last called 1 h ago from 192.0.2.7; 1 mail waits, the first expires in 4 d.',
  ],
  [
    'connected before the time of it is written',
    { state: 'connected', lastSeenMs: undefined },
    'ok: Connected; no mail waits.',
  ],
  [
    'connected, head never fetched',
    { state: 'connected', mailboxSize: 1, mails: [mail] },
    'never_fetches: Holds an event stream, but has not fetched lock_check in 3 h: does its firmware act on new_mail?',
  ],
  [
    'head never fetched, but at the head for a moment only',
    { mailboxSize: 2, mails: [mail, mail], waitingSinceMs: nowMs - 30_000 },
    'ok: Last called 2 min ago; 2 mails wait.',
  ],
  [
    'head fetched once, not settled',
    { mailboxSize: 1, mails: [{ ...mail, fetchCount: 1, firstFetchedAtMs: nowMs - 2 * hour }] },
    'never_answers: Calls, and has lock_check in hand since 2 h ago, without an answer: has what works on it failed?',
  ],
  [
    'head fetched often, not settled',
    { mailboxSize: 1, mails: [{ ...mail, fetchCount: 37, firstFetchedAtMs: nowMs - 2 * hour }] },
    'never_answers: Fetches lock_check again and again (37 times, first 2 h ago) and never answers.',
  ],
  [
    'head fetched often, not settled, with others behind it',
    { mailboxSize: 3, mails: [{ ...mail, fetchCount: 37, firstFetchedAtMs: nowMs - 2 * hour }, mail, mail] },
    'never_answers: Fetches lock_check again and again (37 times, first 2 h ago) and never answers; 2 mails wait behind it.',
  ],
  [
    'requeues grow',
    { mailboxSize: 2, mails: [12, 13].map((requeueCount) => ({ ...mail, fetchCount: 20, requeueCount })) },
    'requeues_all: Requeues everything: each of 2 mails went round 12 times or more.',
  ],
  [
    'silent',
    { state: 'offline', lastSeenMs: nowMs - 21 * minute },
    'silent: Fell silent 16 min ago: it last called 21 min ago from 192.0.2.7; no mail waits.',
  ],
  [
    'all delayed',
    { delayedMails: 2, nextDeliveryMs: nowMs + 90 * minute },
    'delayed: Nothing is due: the next of 2 delayed mails in 1 h.',
  ],
  [
    'mailbox full',
    { mailboxSize: 100, refusals: [{ ...refusal, code: 'mailbox_full', count: 41, firstMs: nowMs - day }] },
    'mailbox_full: Full: 100 mails wait, and 41 were refused since 1 d ago.',
  ],
];

it.each(rows)('%s', (_, change, sentence) => {
  expect(sentenceOf(change)).toBe(sentence);
});

it('what is over is not said: a wrong secret before the last call, an old refusal, a mail that has just come', () => {
  const wrong = { ...refusal, detail: 'device_secret_incorrect' as const, lastMs: nowMs - 3 * minute };
  const old = { ...refusal, code: 'rate_limited' as const, lastMs: nowMs - 2 * hour };
  const fresh = { ...mail, acceptedAtMs: nowMs - 1_000 };
  const waitingSinceMs = fresh.acceptedAtMs;
  expect(sentenceOf({ refusals: [wrong, old], mailboxSize: 1, waitingSinceMs, mails: [fresh] })).toContain(
    'ok: ',
  );
  const accepted = { ...refusal, code: 'schema_mismatch' as const, acceptedMs: nowMs };
  expect(sentenceOf({ refusals: [accepted, { ...accepted, code: 'rate_limited' }] })).toContain('ok: ');
  const before = { ...accepted, acceptedMs: nowMs - hour };
  expect(sentenceOf({ refusals: [before] })).toContain('schema_mismatch: ');
});

it('what holds now comes first, and a single refusal is no reason any more after ten minutes', () => {
  const refused = {
    ...refusal,
    code: 'schema_mismatch' as const,
    name: 'climate',
    lastMs: nowMs - 25 * minute,
  };
  const late =
    'Called, and was refused: its messages did not match schema climate (3 times, last 25 min ago).';
  const hanging = { ...mail, fetchCount: 73, firstFetchedAtMs: nowMs - 25 * minute };
  const never = 'Fetches lock_check again and again (73 times, first 25 min ago) and never answers.';
  expect(findings({ mailboxSize: 1, mails: [hanging], refusals: [refused] })).toEqual([never, late]);
  const once = { ...refused, count: 1 };
  expect(findings({ mailboxSize: 1, mails: [hanging], refusals: [once] })).toEqual([never]);
  expect(sentenceOf({ refusals: [once] })).toContain('ok: ');
  const silent = { state: 'offline', lastSeenMs: nowMs - 25 * minute } as const;
  expect(findings({ ...silent, refusals: [refused] })).toEqual([
    'Fell silent 20 min ago: it last called 25 min ago from 192.0.2.7; no mail waits.',
    late,
  ]);
  expect(findings({ ...silent, refusals: [once] })).toHaveLength(1);
  // Of a device of which nothing was accepted, it is all that is known.
  expect(findings({ state: 'offline', lastSeenMs: undefined, refusals: [refused] })).toEqual([late]);
});

it('a device is asked about mail that it does not fetch after ten minutes of answers that there is some', () => {
  const waiting = (waitingMs: number, seenMs: number) =>
    sentenceOf({
      mailboxSize: 1,
      mails: [mail],
      waitingSinceMs: nowMs - waitingMs,
      lastSeenMs: nowMs - seenMs,
    });
  expect(waiting(2 * minute, 1_000)).toContain('ok: ');
  expect(waiting(11 * minute, 2 * minute)).toContain('ok: ');
  expect(waiting(11 * minute, 1_000)).toContain('never_fetches: ');
});

function findings(change: Partial<DiagnosisInput>): string[] {
  return diagnose({ ...well, ...change }).map(({ sentence }) => sentence);
}

it('a device may have several reasons, what explains most first, each in the present only if it is so', () => {
  const offline = { state: 'offline', lastSeenMs: nowMs - hour, mailboxSize: 1 } as const;
  expect(findings({ ...offline, mails: [mail] })).toEqual([
    'Last called 1 h ago from 192.0.2.7; 1 mail waits, the first expires in 4 d.',
    'Did not fetch lock_check when it last called: does its firmware look at X-Messages-Available?',
  ]);
  const fetched = { ...mail, fetchCount: 37, firstFetchedAtMs: nowMs - 2 * hour };
  expect(findings({ ...offline, mails: [fetched] })[1]).toBe(
    'Fetched lock_check 37 times, and did not answer.',
  );
  const requeued = { ...mail, fetchCount: 20, requeueCount: 12 };
  expect(findings({ ...offline, mails: [requeued] })[1]).toBe('Requeued its mail: it went round 12 times.');
});

it('what follows from a reason is no other reason', () => {
  const wrong = { ...refusal, detail: 'device_secret_incorrect' as const };
  const never = { state: 'offline', lastSeenMs: undefined, mailboxSize: 1, mails: [mail] } as const;
  const locked = [{ address: '192.0.2.7', untilMs: nowMs + 5 * minute }];
  const kinds = (change: Partial<DiagnosisInput>) => diagnose({ ...well, ...change }).map(({ kind }) => kind);
  expect(kinds({ ...never, refusals: [wrong] })).toEqual(['wrong_secret']);
  expect(kinds({ ...never, refusals: [wrong], lockouts: locked })).toEqual(['locked_out']);
  expect(kinds({ ...never, refusals: [wrong], lockouts: locked, enabled: false })).toEqual(['disabled']);
  const silent = { state: 'offline', lastSeenMs: nowMs - hour } as const;
  expect(kinds({ ...silent, refusals: [wrong] })).toEqual(['wrong_secret']);
  expect(kinds({ ...silent, enabled: false })).toEqual(['disabled']);
  expect(kinds({ ...never, enabled: false, mailboxMailsMax: 1 })).toEqual(['disabled', 'mailbox_full']);
});

it("a device's own words are made plain", () => {
  const error = { path: '/a\u202e\u0007b', msg: 'must be number' };
  const hostile = { ...refusal, code: 'schema_mismatch' as const, error };
  expect(sentenceOf({ refusals: [hostile] })).toContain('/a\ufffd\ufffdb must be number');
});
