/** Contract of `Shard`: digests of secrets. */

import { describe, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { engines } from './engine.ts';
import { device, digestOf, fleetId, mailFor, newDevice, second, useStore } from './store.ts';

describe.each(engines)('credentials on $name', (engine) => {
  const store = useStore(engine);

  /** Reads whether it may come in, with which secrets, newest first, and until when with the last of them. */
  async function known(of: DeviceKey) {
    const found = await store.shard.devices.credentials(of);
    if (found === undefined) return undefined;
    const { enabled, secretDigests, oldSecretUntilMs } = found;
    return { enabled, secrets: secretDigests.map(([first]) => first), oldSecretUntilMs };
  }

  it('D3: they are the digests of the secrets, as bytes', async () => {
    const digest = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index));
    await store.shard.devices.create([newDevice(device, { secretDigests: [digest] })]);
    for (const shard of [store.shard, store.elsewhere]) {
      await expect.poll(() => shard.devices.credentials(device)).toBeDefined();
      const [found] = (await shard.devices.credentials(device))?.secretDigests ?? [];
      expect(found && digest.equals(found)).toBe(true);
    }
    expect(await known(device)).toMatchObject({ enabled: true, oldSecretUntilMs: undefined });
  });

  it('D21: a device that is disabled keeps its secrets, and goes on with them when it is enabled', async () => {
    await store.create(device);
    await store.shard.devices.change(device, { enabled: false });
    expect(await known(device)).toMatchObject({ enabled: false, secrets: [1] });
    await store.shard.devices.change(device, { enabled: true });
    expect(await known(device)).toMatchObject({ enabled: true, secrets: [1] });
    await store.shard.devices.change(device, { secretDigests: [digestOf(2)] });
    expect(await known(device)).toMatchObject({ enabled: true, secrets: [2] });
  });

  it('D3: a device has two secrets while one is rotated out, the newest first, also across a restart', async () => {
    await store.create(device);
    const oldUntilMs = Date.now() + 600_000;
    await store.shard.devices.change(device, { rotation: { digest: digestOf(2), oldUntilMs } });
    const both = { enabled: true, secrets: [2, 1], oldSecretUntilMs: oldUntilMs };
    expect(await known(device)).toEqual(both);
    expect(await store.shard.devices.get(device)).toMatchObject({ oldSecretUntilMs: oldUntilMs });
    await store.shard.devices.change(device, { name: 'other', enabled: false });
    await store.shard.devices.change(device, { enabled: true });
    await store.reopen();
    expect(await known(device)).toEqual(both);
    // A third one takes the place of the newest, and the oldest goes at once.
    await store.shard.devices.change(device, {
      rotation: { digest: digestOf(3), oldUntilMs: oldUntilMs + 1 },
    });
    expect(await known(device)).toEqual({
      enabled: true,
      secrets: [3, 2],
      oldSecretUntilMs: oldUntilMs + 1,
    });
  });

  it('D3: without a grace period, and with secrets that are set, the old ones end at once', async () => {
    await store.create(device, second);
    const grace = { digest: digestOf(2), oldUntilMs: Date.now() + 600_000 };
    for (const one of [device, second]) await store.shard.devices.change(one, { rotation: grace });
    await store.shard.devices.change(device, { rotation: { digest: digestOf(3), oldUntilMs: undefined } });
    expect(await known(device)).toEqual({ enabled: true, secrets: [3], oldSecretUntilMs: undefined });
    await store.shard.devices.change(second, { secretDigests: [digestOf(4)] });
    expect(await known(second)).toEqual({ enabled: true, secrets: [4], oldSecretUntilMs: undefined });
  });

  it('D3: to set the newest secret again ends no grace period, and to set the old one does', async () => {
    await store.create(device);
    const oldUntilMs = Date.now() + 600_000;
    await store.shard.devices.change(device, { rotation: { digest: digestOf(2), oldUntilMs } });
    const same = { secretDigests: [digestOf(2)] };
    expect(await store.shard.devices.changeMany([device], same)).toEqual(['unchanged']);
    expect(await known(device)).toEqual({ enabled: true, secrets: [2, 1], oldSecretUntilMs: oldUntilMs });
    await store.shard.devices.change(device, { secretDigests: [digestOf(1)] });
    expect(await known(device)).toEqual({ enabled: true, secrets: [1], oldSecretUntilMs: undefined });
  });

  it('D3: an old secret whose time is over goes by itself, and until it has, says so', async () => {
    const kept = deviceKeyOf(fleetId, 'DEVICE0003');
    await store.create(device, second, kept);
    const oldUntilMs = Date.now() + 500;
    for (const one of [device, second]) {
      await store.shard.devices.change(one, { rotation: { digest: digestOf(2), oldUntilMs } });
    }
    const laterMs = oldUntilMs + 600_000;
    await store.shard.devices.change(kept, { rotation: { digest: digestOf(2), oldUntilMs: laterMs } });
    // A rotation anew takes its own time, not that of the one before.
    await store.shard.devices.change(second, { rotation: { digest: digestOf(3), oldUntilMs: laterMs } });
    await expect
      .poll(async () => {
        const found = await known(device);
        if (found?.secrets.length === 2) expect(found.oldSecretUntilMs).toBe(oldUntilMs);
        return found;
      })
      .toEqual({ enabled: true, secrets: [2], oldSecretUntilMs: undefined });
    expect(await known(second)).toMatchObject({ secrets: [3, 2], oldSecretUntilMs: laterMs });
    expect(await known(kept)).toMatchObject({ secrets: [2, 1], oldSecretUntilMs: laterMs });
  });

  it('D3: an old secret whose time ends while the shard is closed is gone soon after', async () => {
    await store.create(device);
    const oldUntilMs = Date.now() + 1;
    await store.shard.devices.change(device, { rotation: { digest: digestOf(2), oldUntilMs } });
    await store.reopen();
    await expect.poll(async () => (await known(device))?.secrets).toEqual([2]);
  });

  it('the size of its mailbox, where it is read along, is what it is now, on every side', async () => {
    await store.create(device);
    const sizeReadAlong = async (shard: Shard): Promise<number> =>
      (await shard.devices.credentials(device))?.mailboxSize ?? (await shard.mail.size(device));
    await expect.poll(() => store.elsewhere.devices.credentials(device)).toBeDefined();
    const sizes = (): Promise<number[]> => Promise.all([store.shard, store.elsewhere].map(sizeReadAlong));
    await expect.poll(sizes).toEqual([0, 0]);
    const mailId = await store.send(device);
    expect(await sizeReadAlong(store.shard)).toBe(1);
    await expect.poll(sizes).toEqual([1, 1]);
    await store.settle(device, mailId, 'ack');
    expect(await sizeReadAlong(store.shard)).toBe(0);
    await expect.poll(sizes).toEqual([0, 0]);
  });

  it('a watch is current as long as nothing of its device was changed', async () => {
    await store.create(device);
    const { shard } = store;
    const first = shard.devices.changeToken(device);
    if (first === undefined) return;
    expect(first.isCurrent()).toBe(true);
    await shard.devices.credentials(device);
    await shard.mail.head(device);
    expect(first.isCurrent()).toBe(true);
    let mailId: Uint8Array = Buffer.alloc(16);
    const oldUntilMs = Date.now() + 600_000;
    const changes: (() => Promise<unknown>)[] = [
      async () => {
        mailId = await store.send(device);
      },
      () => store.settle(device, mailId, 'requeue'),
      () => store.settle(device, mailId, 'reject'),
      () => shard.deadLetters.replay({ device, mailId, ttlSeconds: 60, mailboxMailsMax: 9 }),
      async () => shard.mail.withdraw(device, (await shard.mail.head(device)).mail?.id ?? mailId),
      () => shard.mail.broadcast({ broadcast: mailId, devices: [device], mail: { ...mailFor(device) } }),
      () => shard.devices.change(device, { rotation: { digest: digestOf(2), oldUntilMs } }),
      () => shard.devices.changeMany([device], { enabled: false }),
      () => shard.devices.put([{ device: newDevice(device), change: { enabled: true } }]),
      () => shard.devices.delete(device),
      () => shard.devices.create([newDevice(device)]),
    ];
    for (const change of changes) {
      const watches = [shard.devices.changeToken(device), store.elsewhere.devices.changeToken(device)];
      await change();
      for (const watch of watches) expect(watch?.isCurrent(), String(change)).toBe(false);
    }
  });
});
