import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import { waitingBytesOf } from '../../../src/domain/mail/mail-bytes.ts';
import { countMailAgain } from '../../../src/storage/postgres/mail/mail-recount.ts';
import { createMigrated, dropDatabase } from '../../harness/postgres/postgres.ts';
import { deviceOf, MailNode, mailFor, prepare } from './mail-node.ts';

const [first, second, third] = [deviceOf(1), deviceOf(2), deviceOf(3)];
const silent = createLog('silent');
const deviceCount = 4;
/** Writes of each of eight callers on each node. */
const writesPerCaller = Number(process.env.WRITES ?? 60);
const fleetId = first.slice(0, 8);

describe('mail of two nodes on one database', () => {
  let url: string;
  let nodes: [MailNode, MailNode];

  const open = (options: ConstructorParameters<typeof MailNode>[1] = {}): void => {
    nodes = [new MailNode(url, options), new MailNode(url, options)];
  };
  /** Rows of a statement with one value each. */
  const valuesOf = async (text: string): Promise<unknown[]> =>
    (await nodes[0].database.query(text)).map((row) => Object.values(row)[0]);

  beforeEach(async () => {
    url = await createMigrated();
    await prepare(url, deviceCount);
  });
  afterEach(async () => {
    for (const node of nodes) await node.close();
    expect(nodes.flatMap(({ failures }) => failures).join()).toBe('');
    // Connections that are about to go are ended by it, which a node would tell as a failure.
    await dropDatabase(url);
  });

  it('D16: of many that come at once as many are taken as there is room for', async () => {
    open();
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        (nodes[n % 2] as MailNode).write('enqueue', mailFor(first, { mailboxMailsMax: 25 })),
      ),
    );
    const queued = outcomes.flatMap((one) => (one.result === 'queued' ? [one] : []));
    const bySize = [...queued].sort((a, b) => a.mailboxSize - b.mailboxSize);
    expect(bySize.map(({ mailboxSize }) => mailboxSize)).toEqual(Array.from({ length: 25 }, (_, n) => n + 1));
    const { items } = await nodes[0].reads.list(first, '', 100);
    expect(items.map(({ id }) => formatUuid(id))).toEqual(bySize.map(({ mailId }) => formatUuid(mailId)));
  });

  it('bytes of mail are counted where they never were, and put right an hour after a node of the version before', async () => {
    open({ mailBytesMax: () => 4 * waitingBytesOf(2) });
    const [{ database, reads }] = nodes;
    await nodes[0].send(first);
    await nodes[0].send(second, { deliverAtMs: Date.now() + 3_600_000 });
    const ofBefore = (change: number): Promise<unknown> =>
      database.query(`UPDATE mail_bytes SET bytes = bytes + ${change}`);
    const anHourLater = (): Promise<unknown> =>
      database.query(`UPDATE value SET number = number - 3600000 WHERE name = 'mail counted'`);
    const recounted = async (): Promise<number> => {
      // Of several nodes at once, and beside those that write, each mail counts once.
      const ids = Promise.all([nodes[0].send(third), nodes[1].send(third)]);
      await Promise.all([...nodes, ...nodes].map((node) => countMailAgain(node.database, silent)));
      for (const id of await ids) await nodes[1].settle(third, id, 'ack');
      return reads.bytesOfFleet(fleetId);
    };
    // As it is after the migration.
    await database.query('DELETE FROM mail_bytes');
    expect(await recounted()).toBe(2 * waitingBytesOf(2));
    await ofBefore(-100);
    expect(await recounted()).toBe(2 * waitingBytesOf(2) - 100);
    await anHourLater();
    expect(await recounted()).toBe(2 * waitingBytesOf(2));
    await ofBefore(1_000);
    await anHourLater();
    const idle = await nodes[1].write('enqueue', mailFor(second));
    expect(idle.result).toBe('fleet_mail_full');
    await countMailAgain(database, silent);
    expect(await reads.bytesOfFleet(fleetId)).toBe(2 * waitingBytesOf(2));
  });

  it('D18: a key of a sender stands for one mail, also where both nodes get it at once', async () => {
    open();
    for (let round = 0; round < 5; round += 1) {
      const idempotency = { key: generateUuid(), digest: randomBytes(32) };
      const outcomes = await Promise.all(
        [0, 1, 0, 1].map((n) => (nodes[n] as MailNode).write('enqueue', mailFor(first, { idempotency }))),
      );
      const ids = outcomes.map((one) => one.result === 'queued' && formatUuid(one.mailId));
      expect(new Set(ids).size).toBe(1);
      expect(outcomes.filter((one) => one.result === 'queued' && !one.repeated)).toHaveLength(1);
      const other = { ...idempotency, digest: randomBytes(32) };
      const reused = await nodes[1].write('enqueue', mailFor(first, { idempotency: other }));
      expect(reused).toEqual({ result: 'key_reused' });
    }
    expect((await nodes[0].reads.head(first)).size).toBe(5);
    const old = { key: generateUuid(Date.now() - 30 * 86_400_000), digest: randomBytes(32) };
    expect(await nodes[0].write('enqueue', mailFor(first, { idempotency: old }))).toEqual({
      result: 'key_too_old',
    });
  });

  it('a mail for the same purpose is queued once, and known as long as it waits for its time', async () => {
    open();
    const once = Buffer.concat([generateUuid(), Buffer.from('action')]);
    const deliverAtMs = Date.now() + 3_600_000;
    const outcomes = await Promise.all(
      [0, 1, 1, 0].map((n) =>
        (nodes[n] as MailNode).write('enqueue', mailFor(first, { dedupeKey: once, deliverAtMs })),
      ),
    );
    expect(outcomes.filter((one) => one.result === 'queued' && !one.repeated)).toHaveLength(1);
    expect(outcomes).toMatchObject(outcomes.map(() => ({ result: 'queued', isDelayed: true })));
    expect(await valuesOf('SELECT delayed FROM mailbox WHERE delayed > 0')).toEqual([1]);
    expect(await nodes[0].write('pruneDedupeKeys', once.subarray(0, 16))).toBe(0);
    expect(await nodes[0].write('pruneDedupeKeys', generateUuid())).toBe(1);
    expect(await nodes[0].write('pruneDedupeKeys', undefined)).toBe(0);
  });

  it('D15: of two verbs at once one settles the mail', async () => {
    open();
    for (let round = 0; round < 5; round += 1) {
      const mailId = await nodes[0].send(first);
      const outcomes = await Promise.all([
        nodes[0].settle(first, mailId, 'ack'),
        nodes[1].settle(first, mailId, 'reject'),
      ]);
      expect(outcomes.map(({ result }) => result).sort()).toEqual(['already_settled', 'settled']);
    }
    expect(await valuesOf('SELECT size FROM mailbox WHERE size > 0')).toEqual([]);
  });

  it('D16: a dead letter is replayed once, by whichever node', async () => {
    open();
    const mailId = await nodes[0].send(first, { payload: Buffer.from('[1]'), requeuesMax: 0 });
    await nodes[1].settle(first, mailId, 'requeue');
    const replay = { device: first, mailId, ttlSeconds: 60, mailboxMailsMax: 10 };
    const outcomes = await Promise.all(nodes.map((node) => node.write('replayMail', replay)));
    expect(outcomes.map(({ result }) => result).sort()).toEqual(['mail_not_found', 'queued']);
    const { size, mail } = await nodes[1].reads.head(first);
    expect([size, mail?.payload.toString(), mail?.requeuesMax]).toEqual([1, '[1]', 0]);
    expect(await valuesOf('SELECT letters FROM letter_count')).toEqual([0]);
  });

  it('D16: a fleet keeps the newest dead letters, whichever node they die at', async () => {
    open({ deadLettersPerFleetMax: 3 });
    const sent: Uint8Array[] = [];
    for (let n = 0; n < 10; n += 1) sent.push(await nodes[0].send(deviceOf(1 + (n % 4))));
    await Promise.all(
      sent.map((mailId, n) => (nodes[n % 2] as MailNode).settle(deviceOf(1 + (n % 4)), mailId, 'reject')),
    );
    const { items } = await nodes[0].letters.list(fleetId, {}, '', 10);
    expect(items).toHaveLength(3);
    expect(await valuesOf('SELECT letters FROM letter_count')).toEqual([3]);
    const dropped = nodes.flatMap(({ done }) => done.map(({ effects }) => effects.droppedLetters));
    expect(dropped.reduce((sum, count) => sum + count, 0)).toBe(7);
  });

  it('D16: what is due is done once where both nodes sweep, and what expires makes room', async () => {
    open();
    await nodes[0].send(second, { ttlSeconds: 0, mailboxMailsMax: 1 });
    for (let n = 0; n < 80; n += 1) await nodes[0].send(deviceOf(1 + 2 * (n % 2)), { ttlSeconds: 0 });
    const deliverAtMs = Date.now() + 1_500;
    const delayed = await nodes[0].send(second, { deliverAtMs, mailboxMailsMax: 1 });
    const over = await nodes[0].send(second, { deliverAtMs: deliverAtMs + 1, mailboxMailsMax: 1 });
    await expect.poll(() => Date.now() > deliverAtMs + 10).toBe(true);
    await Promise.all(nodes.map((node) => node.sweep('due')));
    expect(await valuesOf('SELECT size FROM mailbox ORDER BY device')).toEqual([0, 1, 0, 0]);
    expect(await valuesOf(`SELECT count(*) FROM receipt WHERE state = 'expired'`)).toEqual([81]);
    expect(await valuesOf('SELECT letters FROM letter_count')).toEqual([82]);
    expect((await nodes[0].reads.head(second)).mail?.id).toEqual(Buffer.from(delayed));
    expect(await nodes[1].reads.receipt(second, over)).toMatchObject({ state: 'mailbox_full' });
    const announced = nodes.flatMap(({ done }) => done.flatMap(({ mailboxEvents }) => mailboxEvents));
    expect(announced.filter(({ announcement }) => announcement?.mailId === formatUuid(delayed))).toHaveLength(
      1,
    );
  });

  it('D16, D17: receipts and dead letters that are over go, and letters of deleted devices', async () => {
    open({ receiptRetentionSeconds: -1 });
    for (const device of [first, second]) {
      await nodes[0].settle(device, await nodes[0].send(device), 'reject');
    }
    await nodes[0].database.query('DELETE FROM mailbox WHERE device = $1', [first]);
    await Promise.all(nodes.map((node) => node.sweep('old')));
    expect(await valuesOf('SELECT count(*) FROM receipt')).toEqual([0]);
    expect(await valuesOf('SELECT device FROM dead_letter')).toEqual([second]);
    expect(await valuesOf('SELECT letters FROM letter_count')).toEqual([1]);
  });

  it('two nodes send a broadcast once, and forget it once', async () => {
    open();
    const broadcast = generateUuid();
    const { device: _, ...mail } = mailFor(first);
    const devices = [first, second, deviceOf(3), deviceOf(99)];
    const outcomes = await Promise.all(
      nodes.map((node) => node.write('broadcast', { broadcast, devices, mail })),
    );
    const refused = [{ device: deviceOf(99), reason: 'device_not_found' }];
    expect(outcomes).toEqual([
      { queued: 3, refused },
      { queued: 3, refused },
    ]);
    expect(await valuesOf('SELECT count(*) FROM mail')).toEqual([3]);
    const forgotten = await Promise.all(nodes.map((node) => node.write('forgetBroadcast', broadcast)));
    expect(forgotten.reduce((sum, count) => sum + count)).toBe(3);
  });

  it('nothing is lost or doubled, whatever both do on the same few devices', async () => {
    open({ deadLettersPerFleetMax: 20, delayedMailsPerDeviceMax: 5 });
    const known: { device: DeviceKey; mailId: Uint8Array }[] = [];
    const broadcasts = [generateUuid(), generateUuid(), generateUuid()];
    const onces = Array.from({ length: 10 }, () => Buffer.concat([generateUuid(), Buffer.from('x')]));
    const one = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T;
    const act = async (node: MailNode): Promise<void> => {
      const device = deviceOf(1 + Math.floor(Math.random() * deviceCount));
      const chance = Math.random();
      const mail = known.length > 0 ? one(known) : undefined;
      if (chance < 0.3 || mail === undefined) {
        const life = one([{ ttlSeconds: 0 }, {}, {}]);
        const time = one([{ deliverAtMs: Date.now() + 30 }, {}, {}]);
        const rule = one([{ dedupeKey: one(onces) }, { requeuesMax: 1 }, {}, {}]);
        const given = mailFor(device, { mailboxMailsMax: 15, ...life, ...time, ...rule });
        const outcome = await node.write('enqueue', given);
        if (outcome.result === 'queued') known.push({ device, mailId: outcome.mailId });
      } else if (chance < 0.7)
        await node.write('settle', { ...mail, verb: one(['ack', 'reject', 'requeue', 'requeue']) });
      else if (chance < 0.76) await node.write('withdrawMail', mail);
      else if (chance < 0.82) {
        const { device: _, ...rest } = mailFor(device, { mailboxMailsMax: 15 });
        const devices = Array.from({ length: deviceCount }, (_, n) => deviceOf(deviceCount - n));
        await node.write('broadcast', { broadcast: one(broadcasts), devices, mail: rest });
      } else if (chance < 0.88) {
        const { items } = await node.letters.list(fleetId, {}, '', 50);
        const letter = items.length > 0 ? one(items) : undefined;
        if (letter === undefined) return;
        const { device: of, mailId } = letter;
        if (chance < 0.86) {
          const outcome = await node.write('replayMail', {
            device: of,
            mailId,
            ttlSeconds: 60,
            mailboxMailsMax: 15,
          });
          if (outcome.result === 'queued') known.push({ device: of, mailId: outcome.mailId });
        } else await node.write('dropDeadLetter', { device: of, mailId });
      } else if (chance < 0.95) {
        const head = await node.reads.head(device);
        expect(head.mail === undefined).toBe(head.size === 0);
      } else await node.write('sweep', one(['due', 'old']));
    };
    const run = async (node: MailNode): Promise<void> => {
      for (let n = 0; n < writesPerCaller; n += 1) await act(node);
    };
    await Promise.all(nodes.flatMap((node) => Array.from({ length: 8 }, () => run(node))));

    const { database } = nodes[0];
    const events = new Map<string, string[]>();
    const records = await database.query<{ payload: Buffer }>('SELECT payload FROM record ORDER BY position');
    for (const { payload } of records) {
      const { mail_id, event } = JSON.parse(payload.toString()) as { mail_id: string; event: string };
      events.set(mail_id, [...(events.get(mail_id) ?? []), event]);
    }
    const ends = ['acked', 'rejected', 'expired', 'withdrawn', 'over_requeued', 'mailbox_full'];
    const stateOf = (of: readonly string[]): string => {
      const last = of.filter((event) => event !== 'replayed').at(-1) ?? '';
      return last === 'requeued' ? 'queued' : last;
    };
    for (const of of events.values()) {
      expect(of.filter((event) => event === 'queued').length).toBeLessThanOrEqual(1);
      expect(['queued', 'delayed']).toContain(of[0]);
      const end = of.findIndex((event) => ends.includes(event));
      if (end >= 0) expect(of.slice(end + 1).filter((event) => event !== 'replayed')).toEqual([]);
    }
    const idsOf = async (table: string): Promise<string[]> =>
      (await valuesOf(`SELECT mail_id FROM ${table}`)).map((id) => formatUuid(id as Buffer)).sort();
    const idsIn = (states: readonly string[]): string[] =>
      [...events].flatMap(([id, of]) => (states.includes(stateOf(of)) ? [id] : [])).sort();
    expect(await idsOf('mail')).toEqual(idsIn(['queued']));
    expect(await idsOf('delayed_mail')).toEqual(idsIn(['delayed']));
    expect(await idsOf('receipt')).toEqual(idsIn(ends));
    expect(known.every(({ mailId }) => events.has(formatUuid(mailId)))).toBe(true);
    expect(
      await database.query(`
        SELECT b.* FROM mailbox b WHERE b.size <> (SELECT count(*) FROM mail m WHERE m.device = b.device)
          OR b.delayed <> (SELECT count(*) FROM delayed_mail m WHERE m.device = b.device)
          OR EXISTS (SELECT 1 FROM mail m WHERE m.device = b.device AND (m.sequence < b.head OR m.sequence >= b.tail))`),
    ).toEqual([]);
    const waiting = 'SELECT payload FROM mail UNION ALL SELECT payload FROM delayed_mail';
    const sizes = await valuesOf(`SELECT octet_length(payload) FROM (${waiting}) AS waiting`);
    const total = sizes.reduce((sum: number, size) => sum + waitingBytesOf(Number(size)), 0);
    expect(await valuesOf('SELECT bytes FROM mail_bytes')).toEqual([total]);
    expect(await valuesOf('SELECT letters FROM letter_count')).toEqual(
      await valuesOf('SELECT count(*) FROM dead_letter'),
    );
    expect((await valuesOf('SELECT count(*) FROM dead_letter'))[0]).toBeLessThanOrEqual(20);
    const sent = await database.query<{ mail_id: Buffer }>('SELECT mail_id FROM sent');
    expect(sent.every(({ mail_id }) => events.has(formatUuid(mail_id)))).toBe(true);
  });
});
