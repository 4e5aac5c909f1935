import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { verifyFolder } from '../../../src/maintenance/verify.ts';
import { createFleet, TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { closeStreams, EventStream } from '../../harness/devices/event-stream.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { engine, shards, TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };

interface DeviceDocument {
  device_id: string;
  state: string;
  last_seen: string | null;
  last_address: string | null;
  waiting_since: string | null;
}

let server: TestServer;
let fleet: TestFleet;
let devices: TestDevice[];
beforeAll(async () => {
  server = await TestServer.start({ activityFlushSeconds: 1, stuckSeconds: 1 });
  fleet = await createFleet(server);
  devices = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      fleet.createDevice({
        device_id: `DEVICE00${String(index).padStart(2, '0')}`,
        name: `${index % 2 ? 'door' : 'hall'} ${index}`,
        tags: index % 3 ? ['all'] : ['all', 'third'],
      }),
    ),
  );
});
afterEach(closeStreams);
afterAll(() => server[Symbol.asyncDispose]());

const idsOf = (...indexes: number[]): string[] => indexes.map((index) => devices[index]?.deviceId ?? '');

/** All pages, by the cursors. */
async function list(query: string, limit = 2): Promise<DeviceDocument[]> {
  const found: DeviceDocument[] = [];
  let after = '';
  for (;;) {
    const path = `/fleets/${fleet.fleetId}/devices?limit=${limit}&after=${encodeURIComponent(after)}&${query}`;
    const { status, body } = await server.admin<{ items: DeviceDocument[]; next: string | null }>(
      'GET',
      path,
    );
    expect(status, JSON.stringify(body)).toBe(200);
    found.push(...body.items);
    if (body.next === null) return found;
    after = body.next;
  }
}
const found = async (query: string): Promise<string[]> =>
  (await list(query)).map(({ device_id }) => device_id).sort();

describe('finding devices', () => {
  it('by tag, name, whether they are enabled, and all of it together, a page at a time', async () => {
    await server.admin('PATCH', devices[3]?.adminPath ?? '', { enabled: false });
    expect(await found('')).toEqual(idsOf(...devices.keys()));
    expect(await found('tag=third')).toEqual(idsOf(0, 3, 6, 9));
    expect(await found('name_prefix=door')).toEqual(idsOf(1, 3, 5, 7, 9, 11));
    expect(await found('name_prefix=DooR')).toEqual(idsOf(1, 3, 5, 7, 9, 11));
    const id = devices[3]?.deviceId ?? '';
    expect(await found(`id_prefix=${id}`)).toEqual([id]);
    expect(await found(`id_prefix=${id.slice(0, 8)}&tag=third`)).toContain(id);
    expect(await found(`id_prefix=${id}&enabled=true`)).toEqual([]);
    expect(await found('enabled=false')).toEqual(idsOf(3));
    expect(await found('tag=third&name_prefix=door&enabled=true')).toEqual(idsOf(9));
    expect(await found('tag=none')).toEqual([]);
    expect(await found('tag=all&tag=third')).toEqual(idsOf(0, 3, 6, 9));
    expect(await found('tag=third&tag=all&name_prefix=door')).toEqual(idsOf(3, 9));
    expect(await found('tag=third&tag=none')).toEqual([]);
    const args = ['device', 'list', '--fleet', fleet.fleetId, '--tag', 'third', '--enabled', '--limit', '2'];
    const first = await fleetpostJson(server, args);
    const second = await fleetpostJson(server, [...args, '--after', first.next]);
    expect([...first.items, ...second.items].map(({ device_id }) => device_id)).toEqual(idsOf(0, 6, 9));
  });

  it('by when they were seen, and from where', async () => {
    expect((await devices[1]?.heartbeat())?.status).toBe(201);
    await expect.poll(() => found('seen_after=2020-01-01T00:00:00Z'), patience).toEqual(idsOf(1));
    const [seen] = await list('seen_after=2020-01-01T00:00:00Z');
    expect(seen).toMatchObject({ state: 'active', last_address: '127.0.0.1' });
    const at = seen?.last_seen ?? '';
    expect(await found(`seen_after=${at}`)).toEqual(idsOf(1));
    expect(await found(`seen_before=${at}`)).not.toContain(devices[1]?.deviceId);
    const later = new Date(Date.parse(at) + 1).toISOString();
    expect(await found(`seen_after=${later}`)).toEqual([]);
    expect(await found(`seen_before=${later}`)).toHaveLength(12);
    expect((await server.admin('GET', `/fleets/${fleet.fleetId}/devices?seen_after=soon`)).status).toBe(400);
    const past = await server.admin('GET', `/fleets/${fleet.fleetId}/devices?after=t.AAAA`);
    expect([past.status, past.body.error]).toEqual([400, 'bad_request']);
  });

  it('by how long their mailbox has had the same mail at its head, the longest first, and counted', async () => {
    const order = [7, 2, 11, 3];
    for (const at of order) {
      await devices[at]?.sendMail('first');
      await devices[at]?.sendMail('second');
      // Each at a time of its own.
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await devices[5]?.sendMail('later', '{}', '?deliver_at=2099-01-01T00:00:00Z');
    const listing = () => list('waiting_before=2099-01-01T00:00:00Z');
    await expect.poll(listing).toHaveLength(order.length);
    const waiting = await listing();
    const ids = order.map((at) => devices[at]?.deviceId);
    expect(waiting.map(({ device_id }) => device_id)).toEqual(ids);
    const times = waiting.map(({ waiting_since: since }) => since ?? '');
    expect(await found(`waiting_before=${times[1]}`)).toEqual(idsOf(7));
    expect(await found('waiting_before=2020-01-01T00:00:00Z')).toEqual([]);
    expect(await found('waiting_before=2099-01-01T00:00:00Z&name_prefix=door')).toEqual(idsOf(3, 7, 11));
    const path = `/fleets/${fleet.fleetId}/devices`;
    expect((await server.admin('GET', `${path}?waiting_before=1h`)).status).toBe(400);
    const listed = ['device', 'list', '--fleet', fleet.fleetId, '--waiting-before'];
    expect((await fleetpostJson(server, [...listed, '0s'])).items).toHaveLength(4);
    expect((await fleetpostJson(server, [...listed, '10m'])).items).toEqual([]);
    const sentence = expect.stringMatching(
      /^4 mailboxes of devices that do not call have had the same mail at the head for more than 1 s; the longest is DEVICE0007 \(door 7\) with first for \d+ s: never fetched, the device has never called\.$/,
    );
    const stuck = { kind: 'offline_mailboxes', name: null, device_id: null, count: 4, sentence };
    await expect
      .poll(async () => (await server.admin('GET', `/fleets/${fleet.fleetId}/attention`)).body, patience)
      .toMatchObject({ stuck_seconds: 1, items: [stuck] });
    expect((await server.admin('GET', `/fleets/${fleet.fleetId}/counts`)).body).toMatchObject({ stuck: 4 });
  });

  it('by state: a stream that is open, seen within the time of the fleet, or neither', async () => {
    const open = [devices[2], devices[4], devices[5]] as TestDevice[];
    const streams = await Promise.all(open.map((device) => EventStream.open(device)));
    expect(await found('state=connected')).toEqual(idsOf(2, 4, 5));
    expect(await found('state=connected&name_prefix=hall')).toEqual(idsOf(2, 4));
    expect(await found('state=active')).not.toContain(devices[2]?.deviceId);
    expect(await found('state=offline')).not.toContain(devices[2]?.deviceId);
    await expect.poll(() => found('state=active'), patience).toEqual(idsOf(1));
    expect(await found('state=offline')).toEqual(idsOf(0, 3, 6, 7, 8, 9, 10, 11));
    const counts = await fleetpostJson(server, ['fleet', 'counts', '--fleet', fleet.fleetId]);
    expect(counts).toMatchObject({ devices: 12, disabled: 1, connected: 3 });
    const sum = async (name: string): Promise<number> =>
      [
        ...(await (await fetch(`${server.report.admin_url}/metrics`)).text()).matchAll(
          new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'),
        ),
      ].reduce((all, [, n]) => all + Number(n), 0);
    // On a database they are counted only now and then.
    const patient = { timeout: 30_000 };
    await expect.poll(() => sum('fleetpost_devices_connected'), patient).toBe(3);
    await expect.poll(() => sum('fleetpost_devices'), patient).toBe(12);
    await Promise.all(streams.map((stream) => stream.close()));
    await expect.poll(() => found('state=connected'), patience).toEqual([]);
    await expect.poll(() => found('state=active'), patience).toEqual(idsOf(1, 2, 4, 5));
    await server.admin('PATCH', `/fleets/${fleet.fleetId}`, { active_seconds: 1 });
    await expect.poll(() => found('state=active'), patience).toEqual([]);
    await server.admin('PATCH', `/fleets/${fleet.fleetId}`, { active_seconds: null });
    expect(await found('state=active')).toEqual(idsOf(1, 2, 4, 5));
    await expect
      .poll(async () => (await server.admin('GET', `/fleets/${fleet.fleetId}/counts`)).body, patience)
      .toMatchObject({ devices: 12, connected: 0, active: 4 });
  });
});

it('devices are counted by the filters of a list, with how many of them are offline', async () => {
  const many = await createFleet(server);
  const [one] = await Promise.all(
    Array.from({ length: 9 }, (_, index) =>
      many.createDevice({ tags: index < 6 ? ['row', 'all'] : ['all'] }),
    ),
  );
  const stream = await EventStream.open(one as TestDevice);
  const count = async (query: string) =>
    (await server.admin('GET', `/fleets/${many.fleetId}/devices:count${query}`)).body;
  const isCounted = (devices: number, offline: number) => ({ devices, offline, next: null });
  await expect.poll(() => count('?tag=row'), patience).toEqual(isCounted(6, 5));
  expect(await count('?tag=row&state=offline')).toEqual(isCounted(5, 5));
  expect(await count('?tag=row&enabled=false')).toEqual(isCounted(0, 0));
  expect(await count('?tag=all&id_prefix=')).toEqual(isCounted(9, 8));
  await expect.poll(() => count(''), patience).toEqual(isCounted(9, 8));
  expect(await count('?seen_after=soon')).toMatchObject({ error: 'bad_request' });
  await stream.close();
});

describe('changing many devices', () => {
  it('enables, disables and tags all that are selected, some at a call, and ends their streams (D21)', async () => {
    const many = await createFleet(server);
    const [one] = await Promise.all(
      Array.from({ length: 7 }, (_, index) =>
        many.createDevice({ tags: index < 5 ? ['rollout', 'old'] : ['rest'] }),
      ),
    );
    const device = one as TestDevice;
    const stream = await EventStream.open(device);
    const path = `/fleets/${many.fleetId}/devices:change`;
    const change = { enabled: false, add_tags: ['new'], remove_tags: ['old'] };
    const select = { tag: 'rollout' };
    let after: string | null = '';
    const changed: unknown[] = [];
    const ids: unknown[] = [];
    while (after !== null) {
      const answer: { status: number; body: Record<string, unknown> } = await server.admin('POST', path, {
        select,
        change,
        after,
        limit: 2,
      });
      expect(answer.status).toBe(200);
      changed.push(answer.body.changed);
      ids.push(...(answer.body.changed_ids as string[]));
      after = answer.body.next as string | null;
    }
    expect(changed).toEqual([2, 2, 1]);
    expect(new Set(ids).size).toBe(5);
    await expect.poll(() => stream.isOver, patience).toBe(true);
    expect((await device.heartbeat()).status).toBe(401);
    const again = await server.admin('POST', path, { select, change });
    expect(again.body).toEqual({ changed: 0, changed_ids: [], unchanged: 5, refused: [], next: null });
    const args = ['--fleet', many.fleetId];
    expect(
      await fleetpostJson(server, [
        'device',
        'change',
        ...args,
        '--tag',
        'new',
        '--disabled',
        '--enable',
        '--yes',
      ]),
    ).toEqual({ changed: 5, unchanged: 0, refused: [] });
    expect((await device.heartbeat()).status).toBe(201);
    const listed = await fleetpostJson(server, ['device', 'list', ...args, '--tag', 'new']);
    expect(listed.items.map(({ tags }: { tags: string[] }) => tags)).toEqual(
      Array(5).fill(['rollout', 'new']),
    );
    // Both tags count: only `rollout` and `new` together are all five.
    const both = ['device', 'change', ...args, '--tag', 'nosuch', '--tag', 'rollout', '--disable', '--yes'];
    expect(await fleetpostJson(server, both)).toEqual({ changed: 0, unchanged: 0, refused: [] });
    expect((await device.heartbeat()).status).toBe(201);
    const fits = ['device', 'list', ...args, '--tag', 'rollout', '--tag', 'new'];
    expect((await fleetpostJson(server, fits)).items).toHaveLength(5);
    const named = await server.admin('POST', path, { select: { tag: ['rest', 'new'] }, change });
    expect(named.body).toMatchObject({ changed: 0, unchanged: 0 });
    const mail = ['mail', 'broadcast', ...args, '--name', 'a', '--tag', 'new', '--tag', 'rest', '--dry-run'];
    const dry = await fleetpost([...mail, '--data', server.report.data]);
    expect(dry).toMatchObject({ status: 0, stdout: expect.stringContaining('0 devices') });
    const unknown = await server.admin('POST', path, { select: { device_ids: ['NODEVICE00'] }, change });
    expect(unknown.body).toMatchObject({ changed: 0, refused: [{ error: 'device_not_found' }] });
    const tooMany = { add_tags: Array.from({ length: 32 }, (_, index) => `tag ${index}`) };
    const full = await server.admin('POST', path, {
      select: { device_ids: [device.deviceId] },
      change: tooMany,
    });
    expect(full.body).toMatchObject({ changed: 0, refused: [{ error: 'limit_reached' }] });
    for (const bad of [
      {},
      { all: true, device_ids: [device.deviceId] },
      { all: true, tag: 'x' },
      { tags: 'x' },
    ]) {
      expect((await server.admin('POST', path, { select: bad, change })).status).toBe(400);
    }
  });
});

describe('import and export', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  async function importLines(of: TestFleet, type: string, lines: string, query = ''): Promise<string[]> {
    const path = `/admin/v1/fleets/${of.fleetId}/devices:import${query}`;
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': type };
    const answer = await fetch(`${server.report.admin_url}${path}`, { method: 'POST', headers, body: lines });
    expect(answer.status).toBe(200);
    return (await answer.text()).trimEnd().split('\n');
  }

  it('answers each line of a CSV, and a bad one stops no other', async () => {
    const own = await createFleet(server);
    const secret = `FOS-${'a'.repeat(32)}`;
    const lines = [
      'device_id,name,tags,enabled,secret',
      'ROOM000001,Lamp,hall;west,,',
      `ROOM000002,"Lamp, ""two""","[""a;b"",""c""]",false,${secret}`,
      'ROOM000001,twice,,,',
      'short,,,,',
      ',"unclosed,,,',
      ',no,,such,',
      '',
      ',made,,true,',
      'ROOM000003,,,perhaps,',
    ];
    const answers = await importLines(own, 'text/csv', `${lines.join('\r\n')}\r\n`);
    expect(answers.map((line) => line.split(',').slice(0, 3).join())).toEqual([
      'line,device_id,result',
      '2,ROOM000001,created',
      '3,ROOM000002,created',
      '4,ROOM000001,error',
      '5,,error',
      '6,,error',
      '7,,error',
      expect.stringMatching(/^9,[A-Z0-9]{10},created$/),
      '10,,error',
    ]);
    const [, , , made = ''] = answers[1]?.split(',') ?? [];
    expect((await new TestDevice(server, own.fleetId, 'ROOM000001', made).heartbeat()).status).toBe(201);
    const disabled = await new TestDevice(server, own.fleetId, 'ROOM000002', secret).heartbeat();
    expect(disabled.json.detail).toBe('device_disabled');
    const ndjson = '{"device_id":"ROOM000002","enabled":true}\n[]\n{"device_id":"ROOM000004"}';
    const type = 'application/x-ndjson';
    const updated = await importLines(own, type, ndjson, '?on_existing=update');
    expect(updated.map((line) => JSON.parse(line).result)).toEqual(['updated', 'error', 'created']);
    const repeated = await importLines(own, type, ndjson, '?on_existing=skip&from_line=2');
    expect(repeated.map((line) => JSON.parse(line).result)).toEqual(['error', 'skipped']);
    expect((await new TestDevice(server, own.fleetId, 'ROOM000002', secret).heartbeat()).status).toBe(201);
    const bad = await importLines(own, 'text/csv', 'device_id,colour\nROOM000009,red\n');
    expect(bad).toHaveLength(2);
    expect(bad[1]).toMatch(/^1,,error,,invalid_line/);
  });

  it('ends at a line of more than 64 KiB, says so, and has stored those before', async () => {
    const own = await createFleet(server);
    const lines = ['device_id,name', 'ROOM000001,Lamp', `,${'x'.repeat(70_000)}`, 'ROOM000002,Lamp'];
    const answers = await importLines(own, 'text/csv', lines.join('\n'));
    expect(answers.map((line) => line.split(',').slice(0, 5).join())).toEqual([
      'line,device_id,result,device_secret,error',
      expect.stringMatching(/^2,ROOM000001,created,FOS-/),
      '3,,error,,invalid_line',
      '3,,error,,import_ended',
    ]);
    expect(answers.at(-1)).toContain('a line of more than 65536 bytes');
  });

  it('ends after 1,000 bad lines, says so, and goes on behind them', async () => {
    const own = await createFleet(server);
    const file = join(folder, 'bad.csv');
    const out = join(folder, 'bad-out.csv');
    const lines = ['name', 'first', ...Array.from({ length: 1_500 }, () => 'a,b'), 'last', ''];
    writeFileSync(file, lines.join('\n'));
    const args = ['device', 'import', file, '--fleet', own.fleetId, '--out', out];
    const ended = await fleetpost([...args, '--data', server.report.data]);
    expect([ended.status, ended.stdout]).toEqual([1, expect.stringContaining('at line 1002')]);
    expect(ended.stdout).toContain('Created 1, updated 0, unchanged 0, skipped 0, refused 1000.');
    expect(readFileSync(out, 'utf8')).toMatch(/\n1002,,error,,import_ended,[^\n]*importBadLinesMax[^\n]*\n$/);
    const resumed = await fleetpost([...args, '--resume', '--data', server.report.data]);
    expect(resumed.stdout, resumed.stderr).toContain(
      'Created 1, updated 0, unchanged 0, skipped 0, refused 500.',
    );
    const ndjson = await importLines(own, 'application/x-ndjson', '[]\n'.repeat(3_000));
    expect(ndjson).toHaveLength(1_001);
    // The body is far from its end.
    const long = await importLines(own, 'application/x-ndjson', '[]\n'.repeat(2_000_000));
    expect(long.at(-1)).toContain('import_ended');
    expect(long).toHaveLength(1_001);
  });

  // Each form with one number of shards: the commands take their time.
  it.each([shards === 1 ? 'ndjson' : 'csv'])(
    'an export as %s is an import: the same devices, with their secrets',
    async (format) => {
      const [from, to] = [await createFleet(server), await createFleet(server)];
      const made = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          from.createDevice({ name: `"quoted", ${index} Ö`, tags: index % 2 ? ['a;b', 'c d'] : [] }),
        ),
      );
      await server.admin('PATCH', made[0]?.adminPath ?? '', { enabled: false });
      const file = (name: string): string => join(folder, `${name}.${format}`);
      const exportTo = (fleetId: string, out: string, ...more: string[]) => {
        const args = ['device', 'export', '--fleet', fleetId, '--out', out, '--format', format];
        return fleetpostJson(server, [...args, '--digests', ...more]);
      };
      const [out, results, second] = [file('out'), file('results'), file('second')];
      expect(await exportTo(from.fleetId, out)).toMatchObject({ devices: 40 });
      const whole = readFileSync(out, 'utf8');
      expect(statSync(out).mode & 0o777).toBe(0o600);
      // As one that was killed in the midst of a line.
      truncateSync(out, Math.floor(whole.length / 2));
      await exportTo(from.fleetId, out, '--resume');
      expect(readFileSync(out, 'utf8')).toBe(whole);
      const mixed = [
        'device',
        'export',
        '--fleet',
        from.fleetId,
        '--out',
        out,
        '--format',
        format,
        '--resume',
      ];
      const { status, stderr } = await fleetpost([...mixed, '--data', server.report.data]);
      expect([status, stderr]).toEqual([1, expect.stringContaining('started with --digests')]);
      const importArgs = ['device', 'import', out, '--fleet', to.fleetId, '--out', results];
      expect(await fleetpostJson(server, importArgs)).toMatchObject({ created: 40, error: 0 });
      const answers = readFileSync(results, 'utf8');
      truncateSync(results, Math.floor(answers.length / 2));
      const again = await fleetpostJson(server, [...importArgs, '--resume', '--on-existing', 'skip']);
      expect(again.created).toBe(0);
      const lineNumbers = (text: string) => text.split('\n').map((line) => line.match(/\d+/)?.[0]);
      expect(lineNumbers(readFileSync(results, 'utf8'))).toEqual(lineNumbers(answers));
      await exportTo(to.fleetId, second);
      const plain = (text: string): string =>
        text
          .replaceAll(from.fleetId, '')
          .replaceAll(to.fleetId, '')
          .replaceAll(/\d{4}-\d\d-\d\dT[^",]*/g, '');
      expect(plain(readFileSync(second, 'utf8'))).toBe(plain(whole));
      const { deviceId, secret } = made[7] as TestDevice;
      expect((await new TestDevice(server, to.fleetId, deviceId, secret).heartbeat()).status).toBe(201);
    },
  );

  it('a name that a spreadsheet would run is text in a CSV export, and the same name after an import', async () => {
    const [from, to] = [await createFleet(server), await createFleet(server)];
    const names = ['=1+1', "'=1+1", "''=1", '+a', '-b, c', '@d', '\uff1de', "'quoted'", ' =f', "'", ''];
    const tags = ['=1', 'plain'];
    const made = [];
    for (const name of names) made.push(await from.createDevice({ name, tags }));
    const out = join(folder, 'formulas.csv');
    const args = ['device', 'export', '--fleet', from.fleetId, '--out', out, '--format', 'csv'];
    await fleetpostJson(server, args);
    const cells = parse(readFileSync(out, 'utf8')).flat() as string[];
    expect(cells.filter((cell) => /^[=+\-@\uff1d]/.test(cell))).toEqual([]);
    const answers = await importLines(to, 'text/csv', readFileSync(out, 'utf8'));
    expect(answers.slice(1).filter((line) => !line.includes('created'))).toEqual([]);
    for (const [index, { deviceId }] of made.entries()) {
      const { body } = await server.admin('GET', `/fleets/${to.fleetId}/devices/${deviceId}`);
      expect(body).toMatchObject({ name: names[index], tags });
    }
  });

  it.each(['\u202e', '\u2066', '\u200f', '\u2028', '\u0007'])(
    'no name or tag has %j in it',
    async (character) => {
      const own = await createFleet(server);
      const text = `a${character}b`;
      for (const [method, path, body] of [
        ['POST', `/fleets/${own.fleetId}/devices`, { name: text }],
        ['POST', `/fleets/${own.fleetId}/devices`, { tags: [text] }],
        ['PATCH', `/fleets/${own.fleetId}`, { name: text }],
        ['POST', '/tokens', { name: text, scopes: ['read'] }],
      ] as const) {
        expect((await server.admin(method, path, body)).status, path).toBe(400);
      }
      const [, answer] = await importLines(own, 'text/csv', `name\n"${text}"\n`);
      expect(answer).toContain('invalid_line');
    },
  );

  it('no name or tag has half of a character, which is no text: PostgreSQL refuses it', async () => {
    const path = `/fleets/${(await createFleet(server)).fleetId}/devices`;
    for (const body of [{ name: 'a\ud800b' }, { tags: ['\udfff'] }])
      expect((await server.admin('POST', path, body)).status).toBe(400);
    expect((await server.admin('POST', path, { name: 'a\u{1f4a7}b' })).status).toBe(201);
  });

  it('no name has a control character, and of one that has a resumed export takes no line for a device', async () => {
    const own = await createFleet(server);
    const first = await own.createDevice({ device_id: 'NAMED00001', name: '"x"' });
    const second = await own.createDevice({ device_id: 'NAMED00002' });
    const name = `a\n${own.fleetId},NAMED99999,b`;
    for (const [method, path] of [
      ['POST', `/fleets/${own.fleetId}/devices`],
      ['PATCH', first.adminPath],
    ] as const) {
      expect((await server.admin(method, path, { name })).status).toBe(400);
    }
    const [answer = ''] = await importLines(own, 'application/x-ndjson', JSON.stringify({ name }));
    expect(JSON.parse(answer)).toMatchObject({ result: 'error', error: 'invalid_line' });
    const out = join(folder, 'names.csv');
    const exporting = ['device', 'export', '--fleet', own.fleetId, '--out', out, '--format', 'csv'];
    await fleetpostJson(server, exporting);
    const whole = readFileSync(out, 'utf8');
    const lines = whole.split('\n');
    // As an earlier release could store and write it, killed in the midst of the name.
    writeFileSync(out, `${lines[0]}\n${lines[1]}\n${own.fleetId},${second.deviceId},"${name}\n`);
    await fleetpostJson(server, [...exporting, '--resume']);
    expect(readFileSync(out, 'utf8')).toBe(whole);
  });

  it('an import that goes on names the devices whose secret was in an answer that was lost', async () => {
    const own = await createFleet(server);
    const [file, out] = [join(folder, 'lost.csv'), join(folder, 'lost-results.csv')];
    const lines = ['LOST000001,', 'LOST000002,', `LOST000003,FOS-${'b'.repeat(32)}`, 'LOST000004,'];
    writeFileSync(file, `device_id,secret\n${lines.join('\n')}\n`);
    const args = ['device', 'import', file, '--fleet', own.fleetId, '--out', out];
    await fleetpostJson(server, args);
    await server.admin('DELETE', `/fleets/${own.fleetId}/devices/LOST000004`);
    const [header, answered] = readFileSync(out, 'utf8').split('\n');
    writeFileSync(out, `${header}\n${answered}\n`);
    const going = [...args, '--resume', '--on-existing', 'skip', '--data', server.report.data];
    const { status, stdout } = await fleetpost(going);
    expect(status).toBe(1);
    expect(stdout).toContain('Created 1, updated 0, unchanged 0, skipped 2');
    expect(stdout).toMatch(/existed already: 1\. .*: LOST000002\n$/);
  });

  it('an import of ids and secrets that goes on over lines which were done ends with 0', async () => {
    const own = await createFleet(server);
    const [file, out] = [join(folder, 'done.csv'), join(folder, 'done-results.csv')];
    const rows = ['a', 'b', 'c', 'd'].map(
      (letter, index) => `DONE00000${index},Lamp ${letter},x;y,FOS-${letter.repeat(32)}`,
    );
    writeFileSync(file, `device_id,name,tags,secret\n${rows.join('\n')}\n`);
    const args = ['device', 'import', file, '--fleet', own.fleetId, '--out', out];
    await fleetpostJson(server, args);
    const [header, first] = readFileSync(out, 'utf8').split('\n');
    // Killed when two lines were done whose answers did not arrive, and one that was not.
    await server.admin('DELETE', `/fleets/${own.fleetId}/devices/DONE000003`);
    writeFileSync(out, `${header}\n${first}\n`);
    expect(await fleetpostJson(server, [...args, '--resume'])).toMatchObject({
      created: 1,
      unchanged: 2,
      error: 0,
      secrets_unknown: [],
    });
    // A device that is not what its line says was made by somebody else, or has been changed.
    await server.admin('PATCH', `/fleets/${own.fleetId}/devices/DONE000001`, { name: 'Other' });
    writeFileSync(out, `${header}\n${first}\n`);
    const other = await fleetpost([...args, '--resume', '--json', '--data', server.report.data]);
    expect([other.status, JSON.parse(other.stdout)]).toMatchObject([1, { unchanged: 2, error: 1 }]);
  });

  it('the command says what is wrong with a file', async () => {
    const file = join(folder, 'bad.csv');
    const out = join(folder, 'bad-results.csv');
    writeFileSync(file, 'device_id\nshort\n');
    const args = ['device', 'import', file, '--fleet', fleet.fleetId, '--out', out];
    const connection = ['--data', server.report.data];
    const { status, stdout } = await fleetpost([...args, ...connection]);
    expect([status, stdout]).toEqual([1, expect.stringMatching(/^Created 0, .* refused 1\. /)]);
    const again = await fleetpost([...args, ...connection]);
    expect(again).toMatchObject({ status: 1, stderr: expect.stringMatching(/already exists/) });
  });
});

describe('D3: rotating a secret with a grace period', () => {
  async function rotate(device: TestDevice, graceSeconds?: number): Promise<TestDevice> {
    const body = graceSeconds === undefined ? undefined : { grace_seconds: graceSeconds };
    const answer = await server.admin<{ device_secret: string; old_secret_until: string | null }>(
      'POST',
      `${device.adminPath}/rotate-secret`,
      body,
    );
    expect(answer.status).toBe(200);
    expect(answer.body.old_secret_until === null).toBe(!graceSeconds);
    return new TestDevice(server, device.fleetId, device.deviceId, answer.body.device_secret);
  }

  it('both secrets work until it ends; then the old one does not, nor does a stream that it opened (D21)', async () => {
    const old = await fleet.createDevice();
    expect((await old.heartbeat()).status).toBe(201);
    const oldStream = await EventStream.open(old);
    const renewed = await rotate(old, 4);
    const shown = await server.admin('GET', old.adminPath);
    const untilMs = Date.parse(shown.body.old_secret_until as string);
    expect([(await old.heartbeat()).status, (await renewed.heartbeat()).status]).toEqual([201, 201]);
    const laterStream = await EventStream.open(old);
    const newStream = await EventStream.open(renewed);
    // Asked for all the while, so that workers remember it.
    let lastTakenMs = 0;
    for (let status = 201; status === 201; ) {
      const sentMs = Date.now();
      status = (await old.heartbeat()).status;
      if (status === 201) lastTakenMs = sentMs;
      else expect([status, Date.now() >= untilMs]).toEqual([401, true]);
      // Not faster than a device may ask (deviceRequestsPerSecondMax).
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(lastTakenMs).toBeLessThan(untilMs);
    await expect.poll(() => oldStream.isOver && laterStream.isOver, patience).toBe(true);
    expect(newStream.isOver).toBe(false);
    expect((await renewed.heartbeat()).status).toBe(201);
    await expect
      .poll(async () => (await server.admin('GET', old.adminPath)).body.old_secret_until, patience)
      .toBeNull();
  });

  it('an import that brings the digest it has ends no grace period and no stream', async () => {
    const old = await fleet.createDevice({ tags: ['before'] });
    const renewed = await rotate(old, 600);
    const streams = await Promise.all([EventStream.open(old), EventStream.open(renewed)]);
    const { old_secret_until: until } = (await server.admin('GET', old.adminPath)).body;
    const line = {
      device_id: old.deviceId,
      tags: ['after'],
      secret_digest: createHash('sha256').update(renewed.secret).digest('hex'),
    };
    const answer = await fetch(
      `${server.report.admin_url}/admin/v1/fleets/${fleet.fleetId}/devices:import?on_existing=update`,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/x-ndjson' },
        body: JSON.stringify(line),
      },
    );
    expect(JSON.parse(await answer.text())).toMatchObject({ result: 'updated' });
    expect((await server.admin('GET', old.adminPath)).body).toMatchObject({
      tags: ['after'],
      old_secret_until: until,
    });
    expect([(await old.heartbeat()).status, (await renewed.heartbeat()).status]).toEqual([201, 201]);
    // Streams that a change ends are over before a later change is answered.
    await server.admin('PATCH', old.adminPath, { name: 'later' });
    expect(streams.map(({ isOver }) => isOver)).toEqual([false, false]);
  });

  it('without one the old secret ends at once, and so does an older one when there is a third', async () => {
    const first = await fleet.createDevice();
    const oldest = await EventStream.open(first);
    const second = await rotate(first, 600);
    const third = await rotate(second, 600);
    expect((await first.heartbeat()).status).toBe(401);
    await expect.poll(() => oldest.isOver, patience).toBe(true);
    expect([(await second.heartbeat()).status, (await third.heartbeat()).status]).toEqual([201, 201]);
    const stream = await EventStream.open(third);
    const fourth = await rotate(third);
    await expect.poll(() => stream.isOver, patience).toBe(true);
    expect([(await second.heartbeat()).status, (await third.heartbeat()).status]).toEqual([401, 401]);
    expect((await fourth.heartbeat()).status).toBe(201);
    const tooLong = { grace_seconds: 10_000_000 };
    const refused = await server.admin('POST', `${first.adminPath}/rotate-secret`, tooLong);
    expect([refused.status, refused.body.error]).toEqual([400, 'invalid_body']);
  });
});

it('what was done here has left a folder that is sound', async () => {
  expect(await server.stop()).toBe(0);
  // There is no folder to verify where the data is in a database.
  if (engine === 'postgres') return;
  const quiet = { start: () => {}, onRecord: () => {} };
  expect((await verifyFolder(server.report.data, quiet)).findings.sentences).toEqual([]);
});
