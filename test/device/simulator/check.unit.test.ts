import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CheckFindings } from '../../../src/device/simulator/check/findings.ts';
import { type SettledMail, StampsByDevice } from '../../../src/device/simulator/check/ledger-entries.ts';
import { MailboxCheck } from '../../../src/device/simulator/check/mailbox-check.ts';
import { checkSends } from '../../../src/device/simulator/check/sent-check.ts';
import { doubtBit } from '../../../src/device/simulator/devices/ledger.ts';

const stamps = fc
  .uniqueArray(fc.nat({ max: 100_000 }), { minLength: 3, maxLength: 50 })
  .map((all) => all.sort((a, b) => a - b));

function found(ledger: readonly number[], logged: readonly number[]): CheckFindings {
  const findings = new CheckFindings();
  checkSends('one', ledger, logged, findings);
  return findings;
}

describe('the check of readings', () => {
  it('finds nothing where the log is what was answered', () => {
    fc.assert(
      fc.property(stamps, (sent) => {
        expect(found(sent, sent).isClean).toBe(true);
      }),
    );
  });

  it('finds each way in which it is not', () => {
    fc.assert(
      fc.property(stamps, fc.nat(), (sent, chosen) => {
        const at = chosen % (sent.length - 1);
        const own = sent[at] ?? 0;
        expect(found(sent, sent.toSpliced(at, 1)).counts).toMatchObject({
          lost: 1,
          doubled: 0,
          out_of_order: 0,
          unknown: 0,
        });
        expect(found(sent, [...sent, own]).counts).toMatchObject({ lost: 0, doubled: 1, unknown: 0 });
        const swapped = sent.toSpliced(at, 2, sent[at + 1] ?? 0, own);
        expect(found(sent, swapped).counts).toMatchObject({ lost: 0, doubled: 0, out_of_order: 1 });
        expect(found(sent.toSpliced(at, 1), sent).counts).toMatchObject({ lost: 0, unknown: 1 });
      }),
    );
  });

  it('leaves it open whether what is in doubt is there, but not twice', () => {
    const doubted = [1, (2 | doubtBit) >>> 0, 3];
    expect(found(doubted, [1, 3]).isClean).toBe(true);
    expect(found(doubted, [1, 2, 3]).isClean).toBe(true);
    expect(found(doubted, [1, 2, 2, 3]).doubled).toBe(1);
  });

  it('sorts what all devices sent by device, in its order', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat({ max: 9 }), fc.nat())), (all) => {
        const byDevice = new StampsByDevice();
        for (const [device, stamp] of all) byDevice.add(device, stamp);
        byDevice.sort(10);
        for (let device = 0; device < 10; device += 1) {
          expect([...byDevice.of(device)]).toEqual(
            all.filter(([one]) => one === device).map(([, stamp]) => stamp),
          );
        }
      }),
    );
  });
});

describe('the check of a mailbox', () => {
  const mail = (mailId: string, event: string) => ({ mailId, name: 'bolt', event });
  const answered = (verb: SettledMail['verb'], mailId: string): SettledMail => ({
    verb,
    mailId,
    isDoubtful: false,
  });
  const log = [
    mail('a', 'queued'),
    mail('b', 'queued'),
    mail('a', 'fetched'),
    mail('a', 'requeued'),
    mail('b', 'acked'),
    mail('c', 'queued'),
    mail('a', 'rejected'),
  ];
  const settlements = [answered('requeue', 'a'), answered('ack', 'b'), answered('reject', 'a')];

  function check(
    changes = log,
    settled: readonly SettledMail[] = settlements,
    size = 1,
    mails: readonly string[] = ['c'],
  ): CheckFindings['counts'] {
    const findings = new CheckFindings();
    const mailbox = new MailboxCheck(0, findings);
    for (const change of changes) mailbox.take(change);
    mailbox.checkSettlements(settled);
    mailbox.checkSent(['a', 'b', 'c']);
    mailbox.checkMailbox(size, mails);
    return findings.counts;
  }
  const clean = { lost: 0, doubled: 0, out_of_order: 0, unknown: 0 };

  it('finds nothing where all is as it was answered', () => expect(check()).toEqual(clean));

  it('finds each way in which it is not', () => {
    const without = (index: number) => log.toSpliced(index, 1);
    // A mail that was accepted and never came; one that came twice.
    expect(check(without(5), settlements, 0, [])).toEqual({ ...clean, lost: 1 });
    expect(check([...log, mail('c', 'queued')], settlements, 2, ['c', 'c'])).toEqual({
      ...clean,
      doubled: 1,
    });
    // An acknowledgement that was answered and is not there.
    expect(check(without(6), settlements, 2, ['a', 'c'])).toEqual({ ...clean, lost: 1 });
    // One that nobody was answered.
    expect(check(log, settlements.slice(0, 2)).unknown).toBe(1);
    // A mail that went without its device.
    expect(check([...log, mail('c', 'withdrawn')], settlements, 0, []).lost).toBe(1);
    // Not the first, and a mailbox that is not as it must be.
    expect(check([log[1], log[0], ...log.slice(2)].flatMap((one) => one ?? [])).out_of_order).toBeGreaterThan(
      0,
    );
    expect(check(log, settlements, 0).lost).toBe(1);
    expect(check(log, settlements, 2).doubled).toBe(1);
    expect(check(log, settlements, 1, ['d']).out_of_order).toBe(1);
  });

  it('leaves it open whether a settlement in doubt was done', () => {
    const doubtful = settlements.map((one) => ({ ...one, isDoubtful: one.verb === 'requeue' }));
    expect(check(log, doubtful)).toEqual(clean);
    const never = log.filter(({ event }) => event !== 'requeued');
    const inOrder = [...never.slice(0, 3), mail('a', 'rejected'), mail('b', 'acked'), mail('c', 'queued')];
    expect(check(inOrder, doubtful)).toEqual(clean);
  });
});
