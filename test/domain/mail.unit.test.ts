import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeviceKey } from '../../src/core/identity.ts';
import { generateUuid } from '../../src/core/uuid.ts';
import { broadcastOutcome } from '../../src/domain/mail/broadcast.ts';
import { droppedLetters, dropsPerLetter, isDeath } from '../../src/domain/mail/end-rules.ts';
import type { MailEnd } from '../../src/domain/mail/ended-mail.ts';
import {
  deliveredAs,
  type EnqueueFacts,
  enqueueDecision,
  expiryMs,
  replayedMail,
} from '../../src/domain/mail/enqueue-rules.ts';
import { firstFetchMs } from '../../src/domain/mail/fetch-rules.ts';
import type { SettleVerb } from '../../src/domain/mail/mail.ts';
import {
  repeatedSettle,
  requeuedCount,
  settledAs,
  withdrawalOf,
} from '../../src/domain/mail/settle-rules.ts';
import { rememberEnd, rememberedEnd, settledMax } from '../../src/domain/mail/settled-mails.ts';

const device = 'FLEET001DEVICE0001' as DeviceKey;
const verbs: readonly SettleVerb[] = ['ack', 'reject', 'requeue'];
const ends: readonly MailEnd[] = [
  'acked',
  'rejected',
  'expired',
  'withdrawn',
  'over_requeued',
  'mailbox_full',
];

describe('a mail that is sent', () => {
  const mailbox = { size: 3 };
  const facts: EnqueueFacts<{ size: number }> = {
    nowMs: 1_000,
    deliverAtMs: 1_000,
    mailboxMailsMax: 4,
    delayedMailsMax: 2,
    known: undefined,
    mailbox,
    delayedMails: 0,
    fleetHasRoom: true,
  };
  const later = { deliverAtMs: 1_001 };
  const known = generateUuid();
  const full = { does: 'refuse', outcome: { result: 'mailbox_full', mailboxSize: 4 } };
  const delayedFull = { does: 'refuse', outcome: { result: 'delayed_full' } };

  it.each([
    ['is admitted while there is room', {}, { does: 'admit', mailbox, isDelayed: false }],
    ['D16: is refused by a full mailbox, which tells its size', { mailbox: { size: 4 } }, full],
    ['is not delayed by a time that has passed', { deliverAtMs: 0 }, { does: 'admit', isDelayed: false }],
    ['is delayed until its time', later, { does: 'admit', mailbox, isDelayed: true }],
    [
      'D16: takes no place in the mailbox while delayed',
      { ...later, mailbox: { size: 4 } },
      { does: 'admit', isDelayed: true },
    ],
    ['is refused with one delayed mail too many', { ...later, delayedMails: 2 }, delayedFull],
    [
      'needs no place for delayed mail if it is not',
      { delayedMails: 2 },
      { does: 'admit', isDelayed: false },
    ],
    [
      'is refused without a device',
      { mailbox: undefined },
      { does: 'refuse', outcome: { result: 'device_not_found' } },
    ],
    [
      'is repeated by its dedupe key, from a full mailbox',
      { known, mailbox: { size: 4 } },
      { does: 'repeat' },
    ],
    ['is repeated without a device', { known, mailbox: undefined }, { does: 'repeat', mailId: known }],
  ])('%s', (_, changed, decision) => {
    expect(enqueueDecision({ ...facts, ...changed })).toMatchObject(decision);
  });

  it('D16: is never one more than the mailbox takes, and never refused below that', () => {
    fc.assert(
      fc.property(fc.nat(20), fc.nat(40), (mailboxMailsMax, sent) => {
        const filling = { size: 0 };
        for (let count = 0; count < sent; count += 1) {
          const { does } = enqueueDecision({ ...facts, mailboxMailsMax, mailbox: filling });
          if (does === 'admit') filling.size += 1;
        }
        expect(filling.size).toBe(Math.min(sent, mailboxMailsMax));
      }),
    );
  });

  it('D16: is queued when it is due, or dies of a full mailbox, as it would be refused then', () => {
    fc.assert(
      fc.property(fc.nat(10), fc.nat(10), (size, mailboxMailsMax) => {
        const { does } = enqueueDecision({ ...facts, mailboxMailsMax, mailbox: { size } });
        expect(deliveredAs(size, mailboxMailsMax)).toBe(does === 'admit' ? 'queued' : 'mailbox_full');
      }),
    );
  });

  it('D16: lives from when its mailbox accepts it', () => {
    expect(expiryMs(1_000, 60)).toBe(61_000);
  });

  it('D16: is a new one when a letter is replayed, with the requeues it was allowed', () => {
    const replay = { device, mailId: known, ttlSeconds: 60, mailboxMailsMax: 4 };
    const letter = { name: 'note', payload: Buffer.from('{}') };
    const mail = { device, ...letter, ttlSeconds: 60, mailboxMailsMax: 4 };
    expect(replayedMail(replay, { ...letter, requeuesMax: undefined })).toStrictEqual({
      ...mail,
      requeuesMax: undefined,
    });
    expect(replayedMail(replay, { ...letter, requeuesMax: 0 })).toStrictEqual({ ...mail, requeuesMax: 0 });
  });

  it('to many is counted for each device at its place, and refused for each of the others', () => {
    const other = 'FLEET001DEVICE0002' as DeviceKey;
    const outcome = broadcastOutcome({ devices: [device, other, device] }, (to) =>
      to === device ? 'queued' : 'mailbox_full',
    );
    expect(outcome).toEqual({ queued: 2, refused: [{ device: other, reason: 'mailbox_full' }] });
  });
});

describe('a mail in the mailbox', () => {
  it.each<[SettleVerb, number, number | undefined, string]>([
    ['ack', 0, undefined, 'acked'],
    ['ack', 9, 0, 'acked'],
    ['reject', 0, undefined, 'rejected'],
    ['requeue', 0xffff, undefined, 'requeued'],
    ['requeue', 0, 1, 'requeued'],
    ['requeue', 1, 1, 'over_requeued'],
    ['requeue', 0, 0, 'over_requeued'],
  ])('D14, D16: %s after %i requeues of at most %s: %s', (verb, count, max, event) => {
    expect(settledAs(verb, count, max)).toBe(event);
  });

  it('D14, D16: is requeued as often as it may, and counted', () => {
    fc.assert(
      fc.property(fc.nat(254), (requeuesMax) => {
        let count = 0;
        while (settledAs('requeue', count, requeuesMax) === 'requeued') count = requeuedCount(count);
        expect(count).toBe(requeuesMax);
      }),
    );
    expect(requeuedCount(0xffff)).toBe(0xffff);
  });

  it('D13: was first fetched at the earliest time reported, in whatever order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1 }), (times) => {
        let first: number | undefined;
        for (const firstMs of times) first = firstFetchMs(first, { count: 1, firstMs });
        expect(first).toBe(Math.min(...times));
      }),
    );
  });
});

describe('a mail that has ended', () => {
  it('D15: is settled by the same verb again, already by another, and unknown if not remembered', () => {
    for (const verb of verbs) {
      expect(repeatedSettle(verb, undefined)).toBe('not_found');
      expect(repeatedSettle(verb, 'withdrawn')).toBe('already_settled');
      for (const other of verbs) {
        // The last requeue that was allowed is behind it: this one ended it.
        const end = settledAs(other, 1, 1) as MailEnd;
        expect(repeatedSettle(verb, end)).toBe(verb === other ? 'settled' : 'already_settled');
      }
    }
  });

  it('D17: is withdrawn once and for all, or ended otherwise, or was never there', () => {
    expect(withdrawalOf(undefined)).toBe('not_found');
    for (const end of ends)
      expect(withdrawalOf(end)).toBe(end === 'withdrawn' ? 'withdrawn' : 'already_settled');
  });

  it('D16: is a dead letter unless it was acknowledged or withdrawn', () => {
    expect(ends.filter((end) => !isDeath(end))).toEqual(['acked', 'withdrawn']);
  });

  it('D15: is remembered with its end if it is one of the last 32 that a verb ended', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...ends), { minLength: 2 * settledMax }), (history) => {
        const mailbox = { settled: Buffer.alloc(0) };
        const mails = history.map((end) => ({ id: generateUuid(), end }));
        for (const { id, end } of mails) rememberEnd(mailbox, id, end);
        const byVerb = mails.filter(({ end }) => end !== 'expired' && end !== 'mailbox_full');
        const last = new Set(byVerb.slice(-settledMax));
        for (const mail of mails)
          expect(rememberedEnd(mailbox, mail.id)).toBe(last.has(mail) ? mail.end : undefined);
      }),
    );
  });

  it('D16: displaces the oldest letter of a full fleet, and after a lower limit some more, never all at once', () => {
    fc.assert(
      fc.property(fc.nat(50), fc.integer({ min: 1, max: 20 }), (before, perFleetMax) => {
        let letters = before;
        for (let added = 0; added < 50; added += 1) {
          const dropped = droppedLetters(letters + 1, perFleetMax);
          expect(dropped).toBeLessThanOrEqual(dropsPerLetter);
          letters += 1 - dropped;
        }
        expect(letters).toBeLessThanOrEqual(perFleetMax);
        expect(droppedLetters(perFleetMax, perFleetMax)).toBe(0);
      }),
    );
  });
});
