import { beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});

const ofDevice = (): string[] => ['--fleet', fleet.fleetId, '--device', device.deviceId];
const command = (...args: string[]) => fleetpostJson(server, args);

/** The sentence on stderr of a command that fails. */
async function refused(...args: string[]): Promise<string> {
  const { status, stderr } = await fleetpost([...args, '--data', server.report.data]);
  expect(status).toBe(1);
  return stderr;
}

it('D16, D17: a mail is sent, followed, withdrawn, and as a dead letter shown, replayed and dropped', async () => {
  expect(await command('fleet', 'set', fleet.fleetId, '--mail-requeues-max', '1')).toMatchObject({
    mail_requeues_max: 1,
  });
  const sent = await command('mail', 'send', ...ofDevice(), '--name', 'order', '--payload', '{"n":1.50}');
  expect(sent).toMatchObject({ state: 'queued', mailbox_size: 1 });
  for (const _ of [1, 2]) await device.settle('requeue', sent.mail_id);
  expect(await command('mail', 'receipt', sent.mail_id, ...ofDevice())).toMatchObject({
    state: 'over_requeued',
    requeue_count: 1,
  });
  const list = await command('dead-letter', 'list', '--fleet', fleet.fleetId, '--reason', 'over_requeued');
  expect(list.items).toMatchObject([{ mail_id: sent.mail_id, name: 'order', payload_bytes: 10 }]);
  const reasons = ['--reason', 'expired', '--reason', 'over_requeued'];
  const inFleet = ['--fleet', fleet.fleetId, ...reasons];
  expect((await command('dead-letter', 'list', ...inFleet)).items).toEqual(list.items);
  const tried = await command('dead-letter', 'drop', '--all', '--dry-run', ...inFleet);
  expect(tried).toMatchObject({ dry_run: true, count: 1 });
  const shown = await fleetpost([
    'dead-letter',
    'show',
    sent.mail_id,
    ...ofDevice(),
    '--data',
    server.report.data,
  ]);
  expect(shown.stdout).toBe('{"n":1.50}\n');
  const { new_mail_id: newId } = await command('dead-letter', 'replay', sent.mail_id, ...ofDevice());
  expect((await device.next()).headers.get('x-mail-id')).toBe(newId);
  expect(await refused('dead-letter', 'replay', sent.mail_id, ...ofDevice())).toContain('not_found');
  expect(await refused('dead-letter', 'replay', '--fleet', fleet.fleetId)).toContain('--all');
  await device.settle('reject', newId);
  const dropped = await command(
    'dead-letter',
    'drop',
    '--all',
    '--yes',
    '--fleet',
    fleet.fleetId,
    '--name',
    'order',
    '--reason',
    'rejected',
    '--reason',
    'expired',
  );
  expect(dropped).toEqual({ counts: { dropped: 1 }, failed: [] });

  const at = new Date(Date.now() + 3_600_000).toISOString();
  const delayed = await command('mail', 'send', ...ofDevice(), '--name', 'later', '--deliver-at', at);
  expect(delayed).toMatchObject({ state: 'delayed', mailbox_size: 0 });
  expect(await command('mail', 'list', ...ofDevice())).toEqual({ items: [], next: null });
  expect(await command('mail', 'list', '--delayed', ...ofDevice())).toMatchObject({
    items: [{ mail_id: delayed.mail_id, name: 'later', deliver_at: at, accepted_at: null }],
    next: null,
  });
  const shownDevice = await command('device', 'show', device.deviceId, '--fleet', fleet.fleetId);
  expect(shownDevice).toMatchObject({ mailbox_size: 0, delayed_mails: 1, next_delivery_at: at });
  expect(await command('mail', 'withdraw', delayed.mail_id, ...ofDevice())).toMatchObject({
    mailbox_size: 0,
  });
  expect(await refused('mail', 'withdraw', newId, ...ofDevice())).toContain('already rejected');
  expect(await refused('mail', 'send', ...ofDevice(), '--name', 'x', '--deliver-at', 'noon')).toContain(
    '--deliver-at',
  );
});

it('D31: a mail replaces the one of its key that waits, and who withdraws that is told so', async () => {
  const asleep = await fleet.createDevice();
  const send = ['mail', 'send', '--fleet', fleet.fleetId, '--device', asleep.deviceId, '--name', 'set'];
  const old = await command(...send, '--replace-key', 'set-point', '--payload', '{"n":1}');
  const sent = await command(...send, '--replace-key', 'set-point', '--payload', '{"n":2}');
  expect(sent).toMatchObject({ state: 'queued', mailbox_size: 1 });
  const ofAsleep = ['--fleet', fleet.fleetId, '--device', asleep.deviceId];
  expect(await command('mail', 'receipt', old.mail_id, ...ofAsleep)).toMatchObject({
    state: 'replaced',
    fetch_count: 0,
  });
  expect(await refused('mail', 'withdraw', old.mail_id, ...ofAsleep)).toContain('already replaced');
  expect(await refused(...send, '--replace-key', 'set point')).toContain('--replace-key');
});

it('all letters are replayed, call after call, and of what cannot be the reason is told', async () => {
  const own = await createFleet(server, { mailbox_mails_max: 2 });
  const devices = await Promise.all([own.createDevice(), own.createDevice(), own.createDevice()]);
  for (const one of devices) {
    for (let count = 0; count < 4; count += 1) await one.settle('reject', (await one.sendMail()).mailId);
  }
  const { body } = await server.admin<{ items: unknown[]; next: string }>(
    'POST',
    `/fleets/${own.fleetId}/dead-letters:replay`,
    { filter: {}, limit: 5 },
  );
  expect([body.items.length, typeof body.next]).toEqual([5, 'string']);
  const rest = await command('dead-letter', 'replay', '--all', '--yes', '--fleet', own.fleetId);
  const replayed = (body.items as { result: string }[]).filter(({ result }) => result === 'replayed').length;
  expect(replayed + rest.counts.replayed).toBe(6);
  expect(rest.counts.mailbox_full).toBe(6);
  expect(rest.failed).toHaveLength(6);
});

it('a walk over letters ends, though what it replays dies again at once', async () => {
  const own = await createFleet(server);
  const one = await own.createDevice();
  for (let count = 0; count < 3; count += 1) await one.settle('reject', (await one.sendMail()).mailId);
  const results: string[] = [];
  for (let after: string | null | undefined; after !== null && results.length < 10; ) {
    const { body }: { body: { items: { result: string; new_mail_id: string }[]; next: string | null } } =
      await server.admin('POST', `/fleets/${own.fleetId}/dead-letters:replay`, {
        filter: {},
        limit: 1,
        ...(after && { after }),
      });
    for (const { result, new_mail_id: id } of body.items) {
      results.push(result);
      await one.settle('reject', id);
    }
    after = body.next;
  }
  expect(results).toEqual(['replayed', 'replayed', 'replayed']);
  const left = await server.admin<{ items: unknown[] }>('GET', `/fleets/${own.fleetId}/dead-letters`);
  expect(left.body.items).toHaveLength(3);
});
