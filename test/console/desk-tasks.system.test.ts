/** Tasks of operators in a browser: broadcasts, access, limits, forwarders, consumers. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AttentionDocument } from '../../src/contract/monitoring/attention.ts';
import { freePort } from '../../src/device/simulator/run/free-port.ts';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import { engine, TestServer } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';
import { ConsolePage, launchBrowser } from './browser.ts';
import { hostilePayloads, hostileTexts } from './console-fleet.ts';
import { createDeskFleet, type DeskFleet, deskConfig } from './desk-fleet.ts';

const data = temporaryFolder();
let config: Parameters<typeof TestServer.start>[0];
let server: TestServer;
let browser: Browser;
let desk: DeskFleet;
beforeAll(async () => {
  // A port of its own, which a restarted server has again.
  config = { ...deskConfig, admin: `127.0.0.1:${await freePort()}` };
  [server, browser] = await Promise.all([TestServer.start(config, data), launchBrowser()]);
  desk = await createDeskFleet(server);
});
afterAll(async () => {
  await desk.receiver.close();
  await browser.close();
  await server.stop();
});

const open = (place: string): Promise<ConsolePage> =>
  ConsolePage.open(browser, server, { place: `${desk.fleet.fleetId}/${place}` });
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name });

it('a broadcast is watched, resumed, paused and cancelled, and its refusals are told by reason', async () => {
  await using console = await open('broadcasts');
  const { page } = console;
  await page.getByRole('link', { name: 'set_clock' }).click();
  // Three devices are full by then: one from the start, and those of a broadcast before.
  await button(page, /^Not queued/).click();
  await page.getByText('mailbox full').first().waitFor();
  await button(page, /^Resume/).click();
  await page.getByText('running').first().waitFor();
  await page.getByText(/^\d+(\.\d)?\/s/).waitFor();
  await page.keyboard.press('p');
  await button(page, /^Resume/).waitFor();
  await button(page, 'Cancel').click();
  await button(page, 'Let it go on').click();
  await button(page, 'Cancel').click();
  await button(page, 'Cancel the broadcast').click();
  await page.getByText('cancelled').first().waitFor();
  await page.getByRole('link', { name: 'Who changed this' }).click();
  await button(page, 'cancelled a broadcast').waitFor();
  await button(page, 'paused a broadcast').first().waitFor();
  expect(console.faults).toEqual([]);
});

it('whoever did not take the mail of a broadcast is seen, and the mail with it', async () => {
  await using console = await open(`broadcasts/${desk.doneId}`);
  const { page } = console;
  // What is in the mailboxes is not done yet: the list says so too.
  await button(page, /^Waiting\s*5$/).waitFor();
  const row = (id: string) => page.getByRole('listitem').filter({ hasText: id });
  await row('DESK000003').getByText('active, but has not fetched it').waitFor();
  await row('DESK000006').getByText('has never called').waitFor();
  await page.getByText('"2.4.0"').waitFor();
  await button(page, /^Acknowledged\s*1$/).click();
  await page.getByRole('link', { name: 'DESK000001' }).waitFor();
  await button(page, /^Rejected\s*1$/).click();
  await row('DESK000002').getByText('rejected by the device').waitFor();
  await button(page, 'Send again to this one').click();
  await page.getByText('To 1 device', { exact: true }).waitFor();
  expect(await page.getByLabel('Payload as JSON').inputValue()).toBe('{\n  "version": "2.4.0"\n}');
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'DESK000002 Reception' }).click();
  await page.waitForURL(/devices\/DESK000002\/mail\//);
  expect(console.faults).toEqual([]);
});

it('a token is made and shown once, used, revoked, and all of it is in the audit log', async () => {
  await using console = await open('access');
  const { page } = console;
  await page.getByText('dashboard').first().waitFor();
  await page.keyboard.press('n');
  await page.getByLabel('Name').fill('reporting');
  await button(page, 'Make the token').click();
  const token = await page.locator('dialog .paste pre').first().innerText();
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.locator('dialog').waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(token);
  const as = (): Promise<number> =>
    fetch(`${server.report.admin_url}/admin/v1/fleets/${desk.fleet.fleetId}`, {
      headers: { authorization: `Bearer ${token}` },
    }).then(({ status }) => status);
  expect(await as()).toBe(200);
  const row = page.getByRole('row', { name: /reporting/ });
  await row.getByText(/in 90 d/).waitFor();
  await row
    .getByText(/^(now|\d+ (s|min) ago)$/)
    .first()
    .waitFor();
  await row.getByRole('button', { name: /Revoke/ }).click();
  await button(page, 'Revoke the token').click();
  await row.waitFor({ state: 'detached' });
  expect(await as()).toBe(401);
  await page.getByRole('link', { name: 'Audit log' }).click();
  await button(page, 'revoked the token reporting').first().click();
  await page.getByText('/admin/v1/tokens/:token_id').first().waitFor();
  await button(page, 'made the token reporting (read)').first().waitFor();
  expect(await page.content()).not.toContain(token);
  expect(console.faults).toEqual([]);
});

it('a limit of the fleet is changed, and a device feels it; cleared, it is the configuration\u2019s again', async () => {
  const [device] = desk.devices;
  if (device === undefined) throw new Error('no device');
  await using console = await open('fleet');
  const { page } = console;
  const field = page.getByLabel('Requests of one device');
  await field.fill('fast');
  await page.getByText('A whole number.').waitFor();
  await field.fill('1');
  await page.getByText('--device-requests-per-second-max 1').waitFor();
  await field.press('Enter');
  const whose = page.locator('.limit', { has: field });
  await whose.getByText('its own').waitFor();
  await until(async () => (await device.heartbeat()).status === 429);
  await page.getByLabel('Requests of one device').fill('');
  await button(page, /^Save/).click();
  await whose.getByText('default', { exact: true }).waitFor();
  await whose.getByPlaceholder('1,000 per s').waitFor();
  await until(async () => (await device.heartbeat()).status !== 429);
  // Less retention is asked about first.
  await page.getByLabel('Retention').fill('1 d');
  await button(page, /^Save/).click();
  await page.getByText('removed for good, within minutes').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  expect(console.faults).toEqual([]);
});

it('what a forwarder fails with ends the sentence once', async () => {
  const path = `/fleets/${desk.fleet.fleetId}/attention`;
  const sentence = async (): Promise<string | undefined> => {
    const { body } = await server.admin<AttentionDocument>('GET', path);
    return body.items.find(({ kind, name }) => kind === 'forwarder_held' && name === 'lost')?.sentence;
  };
  await expect.poll(sentence).toMatch(/delivers nothing now: .*[^.]\.$/);
});

it.runIf(engine === 'lmdb')('a backup is taken, with its progress', async () => {
  const folder = join(temporaryFolder(), 'backup');
  await using console = await open('server');
  const { page } = console;
  await button(page, /^Back up/).click();
  await page.getByLabel('Folder').fill(folder);
  await Promise.all([
    page.getByRole('progressbar', { name: 'Backup' }).waitFor(),
    button(page, 'Start the backup').click(),
  ]);
  await page.getByText(/^done: .*B, in /).waitFor();
  expect(existsSync(join(folder, 'backup.json'))).toBe(true);
  // A folder that is not empty is refused in the server's words.
  await button(page, /^Back up/).click();
  await page.getByLabel('Folder').fill(folder);
  await button(page, 'Start the backup').click();
  await page
    .getByRole('alert')
    .getByText(/cannot be used/)
    .waitFor();
  expect(console.faults).toEqual([]);
});

it('the palette leads to a device, a mail, a screen and what can be done, by keys alone', async () => {
  const [device] = desk.devices.slice(20);
  if (device === undefined) throw new Error('no device');
  const { mailId } = await device.sendMail('note', '{"from":"palette"}');
  await using console = await open('live');
  const { page } = console;
  const ask = async (text: string): Promise<void> => {
    await button(page, /^Go to…/).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Go to or do' }).fill(text);
  };
  await ask(device.deviceId.toLowerCase().slice(0, 9));
  await page.getByRole('option', { name: device.deviceId }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('palette').first().waitFor();
  expect(page.url()).toContain(`/devices/DESK00002`);
  await ask(`${device.deviceId} ${mailId}`);
  await page.keyboard.press('Enter');
  await page.getByText('Not fetched yet').waitFor();
  await ask('audit');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Access' }).waitFor();
  await ask('take a backup');
  await page.keyboard.press('Enter');
  if (engine === 'lmdb') {
    await page.getByLabel('Folder').waitFor();
    await page.keyboard.press('Escape');
  } else await page.getByText(/^The data is in a database/).waitFor();
  await console.go(`${desk.fleet.fleetId}/forwarders/warehouse`);
  await button(page, 'Test').waitFor();
  await ask('test');
  await page.keyboard.press('Enter');
  await page.getByText(/The destination took the test event, after/).waitFor();
  await ask('nothing has this name');
  await page.getByText('Nothing fits.').waitFor();
  expect(console.faults).toEqual([]);
});

it('a forwarder is paused and resumed, and what its receiver refused is seen whole, replayed or dropped', async () => {
  const { receiver, devices } = desk;
  receiver.react = () => ({ status: 400 });
  const [, device] = devices;
  for (const payload of hostilePayloads) await device?.request('POST', '/v1/msg/note', payload);
  await using console = await open('forwarders/warehouse');
  const { page } = console;
  const letters = page.getByRole('region', { name: 'Dead letters' }).locator('button.record');
  const newer = page.getByRole('button', { name: /^\d+ new$/ });
  // The list holds still while one reads it.
  await until(async () => {
    if (await newer.isVisible()) await newer.click();
    return (await letters.count()) === hostilePayloads.length;
  });
  await page.getByRole('img', { name: 'Refused over time' }).waitFor();
  for (const letter of await letters.all()) await letter.click();
  await page.getByText('9007199254740993').waitFor();
  await page.getByText('U+200B').first().waitFor();
  await page.getByText('\\ud800').first().waitFor();
  await button(page, 'Show all').first().click();
  receiver.react = () => ({ status: 204 });
  await button(page, 'Replay all').click();
  await page.getByText('None: its destination has refused no record.').waitFor();
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  expect(await page.evaluate('globalThis.isHacked')).toBeUndefined();
  expect(console.faults).toEqual([]);
});

it('a consumer is paused in the list and resumed on its screen; a fetch gets nothing in between', async () => {
  const path = `/fleets/${desk.fleet.fleetId}/consumers/billing`;
  const fetchBatch = () => server.admin('POST', `${path}/fetch`, {});
  await using console = await open('consumers');
  const { page } = console;
  const row = page.getByRole('row', { name: /billing/ });
  await row.getByRole('button', { name: 'Pause' }).click();
  await row.getByText('paused').waitFor();
  expect((await fetchBatch()).body).toMatchObject({ batch_id: null, paused: true });
  await row.getByRole('link', { name: 'billing' }).click();
  await page.getByText('Lease', { exact: true }).waitFor();
  await page.getByText('paused').first().waitFor();
  await button(page, 'Resume').click();
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  expect((await fetchBatch()).body).toMatchObject({ records: expect.arrayContaining([expect.anything()]) });
  await page.keyboard.press('r');
  await page.getByText(/with somebody/).waitFor();
  expect(console.faults).toEqual([]);
});

it('what a stranger writes into a request is text in the audit log', async () => {
  await fetch(`${server.report.admin_url}/admin/v1/tokens`, {
    headers: { authorization: 'Bearer nobody', 'x-forwarded-for': hostileTexts[0] },
  });
  const made = await server.admin('POST', '/tokens', { name: '\u202Egnp.exe \ud800', scopes: ['read'] });
  expect([201, 400]).toContain(made.status);
  await using console = await open('access/audit?book=refused');
  const { page } = console;
  await button(page, 'GET tokens').first().click();
  await page.getByText(`says: ${hostileTexts[0]}`).waitFor();
  await console.go(`${desk.fleet.fleetId}/access`);
  await page.getByText(hostileTexts[0]).first().waitFor();
  expect(await page.evaluate('globalThis.isHacked')).toBeUndefined();
  expect(console.faults).toEqual([]);
});

it('of two browsers each has a session of its own; one ends the other, which says so', async () => {
  await using one = await open('access/sessions');
  await using other = await open('consumers');
  const [page, away] = [one.page, other.page];
  await away.getByText('warehouse').waitFor();
  await page.keyboard.press('r');
  // The newest of the others is that of the other browser.
  await button(page, 'End').nth(1).waitFor();
  const ends = page.locator('tbody tr:not(.is-selected)').getByRole('button', { name: 'End' });
  await ends.first().click();
  await button(page, 'End the session').click();
  await away.keyboard.press('r');
  await away.getByText('Your session has ended (revoked').waitFor();
  await page.getByText('(this one)').waitFor();
  expect([...one.faults, ...other.faults]).toEqual([]);
});

it('a revoked token ends the work of its session, and takes nothing with it', async () => {
  const { body } = await server.admin<{ token: string; token_id: string }>('POST', '/tokens', {
    name: 'leaving',
    scopes: ['admin'],
  });
  const place = `${desk.fleet.fleetId}/access/tokens?new=1`;
  await using console = await ConsolePage.open(browser, server, { place, token: body.token });
  const { page } = console;
  await page.getByLabel('Name').fill('never made');
  await server.admin('DELETE', `/tokens/${body.token_id}`);
  await button(page, 'Make the token').click();
  await page.getByText('This prints a code for one login').waitFor();
  const { body: left } = await server.admin<{ items: { name: string }[] }>('GET', '/tokens?limit=1000');
  expect(left.items.map(({ name }) => name)).not.toContain('never made');
});

it('with a clock that is off by an hour, what is made ends by the clock of the server', async () => {
  await using console = await open('access');
  const { page } = console;
  await page.addInitScript(() => {
    const RealDate = Date;
    const now = (): number => RealDate.now() + 3_600_000;
    globalThis.Date = new Proxy(RealDate, {
      construct: (target, args) => Reflect.construct(target, args.length === 0 ? [now()] : args),
      get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    });
  });
  await console.go(`${desk.fleet.fleetId}/access/tokens?new=1`);
  await page.getByLabel('Name').fill('for a day');
  await page.getByLabel('Expires').selectOption('in a day');
  // What is chosen stays so, whatever is chosen after it.
  await page.getByRole('checkbox', { name: /^mail/ }).click();
  await button(page, 'Make the token').click();
  await page.getByText('shown this one time').waitFor();
  await page.getByRole('button', { name: 'I have stored it' }).click();
  const row = page.getByRole('row', { name: /for a day/ });
  await row.getByText('in 24 h').waitFor();
  const { body } = await server.admin<{ items: { name: string; expires_at: string }[] }>(
    'GET',
    '/tokens?limit=1000',
  );
  const made = body.items.find(({ name }) => name === 'for a day');
  expect(Math.abs(Date.parse(made?.expires_at ?? '') - Date.now() - 86_400_000)).toBeLessThan(120_000);
});

it('a server that restarts is said to be away; then its figures go on, and what was typed is still there', async () => {
  await using console = await open('server');
  await using typing = await open('fleet');
  const { page } = console;
  await page.getByText('Commits/s').waitFor();
  await typing.page.getByLabel('Mails in a mailbox').fill('55');
  await server.stop();
  await page.getByText(/The server does not answer since/).waitFor();
  server = await TestServer.start(config, data);
  await page.getByText(/The server does not answer since/).waitFor({ state: 'detached' });
  await page.getByText('Commits/s').waitFor();
  expect(await typing.page.getByLabel('Mails in a mailbox').inputValue()).toBe('55');
  await button(typing.page, /^Save/).click();
  await typing.page.getByText('its own').nth(1).waitFor();
  expect([...console.faults, ...typing.faults]).toEqual([]);
});
