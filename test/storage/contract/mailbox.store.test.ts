/** Contract of `Shard`: mailboxes, their order and bounds. */

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { formatUuid, isUuid } from '../../../src/core/uuid.ts';
import type { Mail } from '../../../src/domain/mail/mail.ts';
import { mailPageBytesMax } from '../../../src/domain/mail/shard-mail.ts';
import type { Page } from '../../../src/domain/page.ts';
import { engines } from './engine.ts';
import { device, mailFor, namesake, second, useStore } from './store.ts';

describe.each(engines)('the mailbox on $name', (engine) => {
  const store = useStore(engine);
  const textsOf = (ids: readonly Uint8Array[]): string[] => ids.map((id) => formatUuid(id));

  it('an empty mailbox has no head, nor has one of nobody', async () => {
    await store.create(device);
    for (const of of [device, second]) {
      expect(await store.shard.mail.size(of)).toBe(0);
      expect(await store.shard.mail.head(of)).toEqual({ size: 0, mail: undefined });
      expect(await store.shard.mail.list(of, '', 10)).toEqual({ items: [], next: null });
    }
  });

  it('D14: first in, first out; the size and the head are those of what waits, also after a restart', async () => {
    await store.create(device, second, namesake);
    const ids: Uint8Array[] = [];
    for (let count = 1; count <= 10; count += 1) {
      const outcome = await store.shard.mail.enqueue(mailFor(device));
      expect(outcome).toMatchObject({
        result: 'queued',
        mailboxSize: count,
        repeated: false,
        isDelayed: false,
      });
      if (outcome.result === 'queued') ids.push(outcome.mailId);
    }
    expect(ids.every((id) => id.length === 16 && isUuid(id))).toBe(true);
    expect(new Set(textsOf(ids)).size).toBe(10);
    for (const isReopened of [false, true]) {
      if (isReopened) await store.reopen();
      expect(await store.mailIds(device)).toEqual(textsOf(ids));
      const { size, mail } = await store.shard.mail.head(device);
      expect([size, mail && formatUuid(mail.id)]).toEqual([10, formatUuid(ids[0] as Uint8Array)]);
      expect(await store.shard.mail.size(device)).toBe(10);
      expect(await store.shard.devices.get(device)).toMatchObject({ mailboxSize: 10 });
    }
    for (const [index, id] of ids.entries()) {
      expect((await store.shard.mail.head(device)).mail?.id.equals(id)).toBe(true);
      expect(await store.settle(device, id, 'ack')).toEqual({ result: 'settled', mailboxSize: 9 - index });
    }
    for (const of of [second, namesake]) expect(await store.shard.mail.size(of)).toBe(0);
  });

  it('D11: a mail is answered as it was sent, byte for byte, and with its life', async () => {
    await store.create(device);
    const beforeMs = Date.now();
    const payload = Buffer.from('{ "a":1.50,"é" : 12345678901234567890 }');
    await store.send(device, { name: 'N-1_', payload, ttlSeconds: 600, requeuesMax: 254 });
    await store.send(device, {
      name: 'x'.repeat(255),
      payload: randomBytes(65_536),
      ttlSeconds: 315_360_000,
    });
    const { items } = await store.shard.mail.list(device, '', 10);
    const [first, last] = items;
    const { mail: head } = await store.shard.mail.head(device);
    for (const mail of [first, head]) {
      expect(mail).toMatchObject({
        name: 'N-1_',
        requeueCount: 0,
        requeuesMax: 254,
        fetchCount: 0,
        firstFetchedAtMs: undefined,
      });
      expect(mail?.payload.equals(payload)).toBe(true);
    }
    expect(first?.acceptedAtMs).toBeGreaterThanOrEqual(beforeMs - 5_000);
    expect(first?.acceptedAtMs).toBeLessThanOrEqual(Date.now() + 5_000);
    expect((first?.expiresAtMs ?? 0) - (first?.acceptedAtMs ?? 0)).toBe(600_000);
    expect(last).toMatchObject({ name: 'x'.repeat(255), requeuesMax: undefined });
    expect((last?.expiresAtMs ?? 0) - (last?.acceptedAtMs ?? 0)).toBe(315_360_000_000);
    expect(last?.payload).toHaveLength(65_536);
  });

  it('mail comes by pages behind a cursor, a whole number, which need not be of mail that still waits', async () => {
    await store.create(device);
    const ids = await store.sendMany(device, 7);
    const first = await store.shard.mail.list(device, '', 3);
    expect(first.items.map(({ id }) => formatUuid(id))).toEqual(textsOf(ids.slice(0, 3)));
    expect(first.next).toMatch(/^[0-9]{1,15}$/);
    // The last of the page moves behind all, the first of the next one goes.
    await store.settle(device, ids[2] as Uint8Array, 'requeue');
    await store.settle(device, ids[3] as Uint8Array, 'ack');
    const rest = await store.shard.mail.list(device, first.next ?? '', 4);
    const [third, ...others] = ids.slice(2) as [Uint8Array, ...Uint8Array[]];
    expect(rest.items.map(({ id }) => formatUuid(id))).toEqual(textsOf([...others.slice(1), third]));
    expect(rest.next).toBeNull();
    expect((await store.shard.mail.list(device, '', 6)).next).toBeNull();
  });

  it('a page of large mails ends after a megabyte, and those behind it come with the next', async () => {
    await store.create(device);
    const payload = Buffer.from(JSON.stringify({ text: 'x'.repeat(60_000) }));
    for (let mail = 0; mail < 40; mail += 1) await store.shard.mail.enqueue({ ...mailFor(device), payload });
    const pages: number[] = [];
    let after: string | null = '';
    while (after !== null) {
      const page: Page<Mail> = await store.shard.mail.list(device, after, 1_000);
      pages.push(page.items.length);
      after = page.next;
    }
    const full = Math.ceil(mailPageBytesMax / payload.length);
    expect(pages).toEqual([full, full, 40 - 2 * full]);
  });

  it('D16: a full mailbox refuses a new mail, whoever says how much it holds, and takes one when there is room', async () => {
    await store.create(device);
    const [first] = await store.sendMany(device, 3);
    const limited = mailFor(device, { mailboxMailsMax: 3 });
    expect(await store.shard.mail.enqueue(limited)).toEqual({ result: 'mailbox_full', mailboxSize: 3 });
    expect(await store.shard.mail.enqueue({ ...limited, mailboxMailsMax: 1 })).toMatchObject({
      mailboxSize: 3,
    });
    expect(await store.shard.mail.enqueue({ ...limited, mailboxMailsMax: 4 })).toMatchObject({
      result: 'queued',
    });
    for (const mailId of [first, first]) await store.settle(device, mailId as Uint8Array, 'ack');
    expect(await store.shard.mail.enqueue(limited)).toMatchObject({ result: 'mailbox_full', mailboxSize: 3 });
    expect(await store.shard.mail.enqueue(mailFor(second))).toEqual({ result: 'device_not_found' });
  });

  it('D16: of many that come at once as many are taken as there is room for', async () => {
    await store.create(device);
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        (n % 2 ? store.shard : store.elsewhere).mail.enqueue(mailFor(device, { mailboxMailsMax: 25 })),
      ),
    );
    const queued = outcomes.flatMap((one) => (one.result === 'queued' ? [one] : []));
    expect(queued.map(({ mailboxSize }) => mailboxSize).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 25 }, (_, n) => n + 1),
    );
    const refused = outcomes.filter(({ result }) => result !== 'queued');
    expect(refused).toEqual(refused.map(() => ({ result: 'mailbox_full', mailboxSize: 25 })));
    await expect.poll(() => store.shard.mail.size(device)).toBe(25);
    // The size that each caller was told is the place that its mail got.
    const bySize = [...queued].sort((a, b) => a.mailboxSize - b.mailboxSize);
    expect(await store.mailIds(device)).toEqual(bySize.map(({ mailId }) => formatUuid(mailId)));
  });

  it('who sends sees the mail at once, and everybody else soon', async () => {
    await store.create(device);
    const id = await store.send(device, {}, store.elsewhere);
    expect((await store.elsewhere.mail.head(device)).mail?.id.equals(id)).toBe(true);
    await expect.poll(() => store.shard.mail.size(device)).toBe(1);
  });
});
