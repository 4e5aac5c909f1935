/** Tasks around devices in a browser: finding, sending, replaying, tagging. */

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { freePort } from '../../src/device/simulator/run/free-port.ts';
import { createFleet } from '../harness/devices/device.ts';
import { untilNoticed } from '../harness/features/attention.ts';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import { TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser, newContext } from './browser.ts';
import { type ConsoleFleet, createConsoleFleet } from './console-fleet.ts';

const data = temporaryFolder();
let config: Parameters<typeof TestServer.start>[0];
let server: TestServer;
let browser: Browser;
let made: ConsoleFleet;
beforeAll(async () => {
  // Ports of its own, which a restarted server has again.
  config = {
    admin: `127.0.0.1:${await freePort()}`,
    activityFlushSeconds: 1,
    stuckSeconds: 1,
  } as typeof config;
  [server, browser] = await Promise.all([TestServer.start(config, data), launchBrowser()]);
  made = await createConsoleFleet(server);
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

it('a device is found by its id, and its state is a sentence', async () => {
  const { fleet, pump } = made;
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  await page.getByLabel('Find devices').fill(pump.deviceId);
  await page.keyboard.press('Enter');
  await page.getByText(/its datapoints do not match schema flow/).waitFor();
  // The twelve lines of the quickstart, with its own ids.
  await page.getByText('Twelve lines of Python or JavaScript').click();
  await page.getByText(`"${fleet.fleetId}", "${pump.deviceId}"`).waitFor();
  await page.getByRole('button', { name: 'JavaScript' }).click();
  await page.getByText(`fleet: '${fleet.fleetId}'`).waitFor();
  // The code is used, and the address holds nothing of it.
  expect(page.url()).toBe(`${server.report.admin_url}/console/${fleet.fleetId}/devices/${pump.deviceId}`);
});

it('one stuck device among others is named on the first page, a click away; of many the list is', async () => {
  const fleet = await createFleet(server);
  const devices = await Promise.all(Array.from({ length: 30 }, () => fleet.createDevice()));
  const [stuck, busy] = devices;
  if (stuck === undefined || busy === undefined) throw new Error('devices were made');
  await stuck.sendMail('lock_check');
  await busy.settle('ack', (await busy.sendMail('lock_check')).mailId);
  const sentence = /has had lock_check at the head of its mailbox for \d+ (s|min): never fetched/;
  await untilNoticed(fleet, sentence);
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  await page.getByRole('link', { name: sentence }).click();
  await page.getByText('lock_check').first().waitFor();
  expect(page.url()).toBe(`${server.report.admin_url}/console/${fleet.fleetId}/devices/${stuck.deviceId}`);
  for (const device of devices.slice(2, 5)) await device.sendMail('lock_check');
  await untilNoticed(fleet, /^4 mailboxes/m);
  await console.go(fleet.fleetId);
  await page.getByText('4 mailboxes of devices that do not call have had the same mail').click();
  await page.getByText(`fleetpost device list --fleet ${fleet.fleetId} --waiting-before 1s`).waitFor();
  await expect.poll(() => page.locator('tbody tr').count()).toBe(4);
  expect(console.faults).toEqual([]);
});

it('an id is found in small letters: on the first page, among the devices, and in the palette', async () => {
  const { fleet, pump } = made;
  const small = pump.deviceId.toLowerCase();
  const small9 = await fleet.createDevice({ device_id: 'smallpump1', name: 'Pump of small letters' });
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  const isOpen = (id: string): Promise<void> => page.waitForURL(new RegExp(`/devices/${id}$`));
  const find = async (text: string): Promise<void> => {
    await page.getByLabel('Find devices').fill(text);
    await page.keyboard.press('Enter');
  };
  await find(small);
  await isOpen(pump.deviceId);
  await console.go(fleet.fleetId);
  await find(small9.deviceId);
  await isOpen(small9.deviceId);
  await console.go(`${fleet.fleetId}/devices`);
  await find('id:lampoff');
  await page.getByRole('link', { name: 'LAMPOFF001' }).waitFor();
  expect(page.url()).toContain('q=id%3ALAMPOFF');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to or do' }).fill(small);
  await page.getByRole('option', { name: pump.deviceId }).first().waitFor();
  await page.keyboard.press('Enter');
  await isOpen(pump.deviceId);
  expect(console.faults).toEqual([]);
});

it('a row of the devices opens wherever it is clicked, but for its box; dead letters are counted there too', async () => {
  const { fleet } = made;
  const place = `${fleet.fleetId}/devices?q=tag:floor-2`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  const screens = page.getByRole('navigation', { name: 'Screens' });
  await screens.getByTitle('Dead letters of the last 24 hours').waitFor();
  await page.getByLabel('Select LAMP000003').check();
  await page.getByText('1 selected').waitFor();
  const lamp = page.getByRole('cell', { name: 'Lamp 6', exact: true });
  // On a busy machine rows may still move between the press of the button and its release, which is a click on none.
  await vi.waitFor(
    async () => {
      const [popup] = await Promise.all([
        page.context().waitForEvent('page', { timeout: 5_000 }),
        lamp.click({ modifiers: ['Control'] }),
      ]);
      await popup.close();
    },
    { timeout: 40_000 },
  );
  await page.getByText('1 selected').waitFor();
  await lamp.click();
  await page.waitForURL(/devices\/LAMP000006$/);
  expect(console.faults).toEqual([]);
});

it('the pulse is level over the time that each value is the mean of', async () => {
  const { fleet, pump } = made;
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  // Lines of the charts that go neither along nor up or down.
  await page.addInitScript(`
    globalThis.drawn = { slanted: 0, along: 0 };
    const ends = new WeakMap();
    const { lineTo } = Path2D.prototype;
    Path2D.prototype.lineTo = function (x, y) {
      const [fromX, fromY] = ends.get(this) ?? [x, y];
      if (x !== fromX) drawn[y === fromY ? 'along' : 'slanted'] += 1;
      ends.set(this, [x, y]);
      lineTo.call(this, x, y);
    };
  `);
  await page.reload();
  const along = async (): Promise<number> => {
    await pump.heartbeat();
    return page.evaluate('drawn.along');
  };
  // A line begins with the second minute of the server.
  await expect.poll(along, { timeout: 150_000, interval: 1_000 }).toBeGreaterThan(0);
  expect(await page.evaluate('drawn.slanted')).toBe(0);
}, 200_000);

it('nothing above the payload moves while a mail is written and its device and schema are read', async () => {
  const { fleet, pump } = made;
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  await page.getByRole('button', { name: 'Send mail' }).click();
  const places = (): Promise<unknown[]> =>
    Promise.all(
      ['To', 'Mail', 'Lives for', 'Deliver at'].map((name) =>
        page.getByLabel(name, { exact: true }).boundingBox(),
      ),
    );
  await page.getByLabel('To', { exact: true }).waitFor();
  const before = await places();
  await page.getByLabel('To', { exact: true }).fill(pump.deviceId);
  await page.getByText('in its mailbox').waitFor();
  await page.getByLabel('Mail', { exact: true }).fill('none_of_these');
  await page.getByText('It has no schema').waitFor();
  expect(await places()).toEqual(before);
  await page.getByLabel('Mail', { exact: true }).fill('set_speed');
  await page.getByLabel(/^rpm/).waitFor();
  expect(await places()).toEqual(before);
});

it('a mail is written by the form of its schema, and seen being fetched and acknowledged', async () => {
  const { fleet, pump } = made;
  const lamp = await fleet.createDevice({ name: 'Lamp by the door' });
  const place = `${fleet.fleetId}/devices/${lamp.deviceId}`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  await page.getByRole('button', { name: 'Send mail' }).click();
  await page.getByLabel('Mail', { exact: true }).fill('set_speed');
  await page.getByLabel(/^rpm/).fill('9000');
  await page.getByText('At most 3,000.', { exact: true }).waitFor();
  const send = page.getByRole('button', { name: /^Send Ctrl/ });
  expect(await send.getAttribute('aria-disabled')).toBe('true');
  await page.getByText('rpm: At most 3,000.').waitFor();
  await page.getByLabel(/^rpm/).fill('1450');
  // What was written outlives Esc, and a load of the page.
  await page.keyboard.press('Escape');
  await page.getByLabel(/^rpm/).waitFor({ state: 'detached' });
  await page.reload();
  await page.getByRole('button', { name: 'Send mail' }).click();
  await expect.poll(() => page.getByLabel(/^rpm/).inputValue()).toBe('1450');
  await send.click();
  await page.getByText('Not fetched yet').waitFor();
  const { headers, json } = await lamp.next();
  expect(json).toEqual({ rpm: 1450 });
  await lamp.settle('ack', headers.get('x-mail-id') ?? '');
  await page.getByText('Acknowledged').waitFor();
  expect(pump.fleetId).toBe(lamp.fleetId);
  expect(console.faults).toEqual([]);
});

it('a dead letter is replayed by keys alone', async () => {
  const { fleet, pump } = made;
  const lamp = await fleet.createDevice();
  const { mailId } = await lamp.sendMail('to_be_replayed', '{"a":1}');
  await lamp.next();
  await lamp.settle('reject', mailId);
  expect(pump.fleetId).toBe(lamp.fleetId);
  const place = `${fleet.fleetId}/dead-letters?name=to_be_replayed`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  await page.getByLabel('Payload', { exact: true }).waitFor();
  await page.keyboard.press('r');
  await page.getByText('1 replayed').waitFor();
  expect((await lamp.mails()).map(({ name }) => name)).toEqual(['to_be_replayed']);
});

it('all that fit a filter are tagged at once', async () => {
  const { fleet } = made;
  const place = `${fleet.fleetId}/devices?q=tag:floor-2`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  await page.getByLabel('Select all on this page').check();
  await page.getByRole('button', { name: 'Select all that fit' }).click();
  await page.getByRole('button', { name: 'Add tag' }).click();
  await page.getByLabel('Tag', { exact: true }).fill('night');
  await page.getByRole('dialog').getByRole('button', { name: 'Add the tag to 8 devices' }).click();
  await page.getByText('Added the tag night to 8 devices.').waitFor();
  await page.keyboard.press('z');
  await page.getByText('Undone.').waitFor();
  const path = `/fleets/${fleet.fleetId}/devices:count?tag=night`;
  expect((await server.admin('GET', path)).body).toMatchObject({ devices: 0 });
});

it('what a session may not do is there, disabled, with the name of the scope', async () => {
  const { fleet, pump } = made;
  const { body } = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'reader',
    scopes: ['read'],
    fleet_id: fleet.fleetId,
  });
  const place = `${fleet.fleetId}/devices/${pump.deviceId}`;
  await using console = await ConsolePage.open(browser, server, { place, token: body.token });
  const button = console.page.getByRole('button', { name: 'Send mail' });
  await button.waitFor();
  expect(await button.getAttribute('aria-disabled')).toBe('true');
  expect(await button.getAttribute('title')).toBe('Your session lacks the scope mail.');
});

it('a session ends on the screen when its token is revoked', async () => {
  const { fleet, pump } = made;
  const { body } = await server.admin<{ token: string; token_id: string }>('POST', '/tokens', {
    name: 'short',
    scopes: ['read'],
  });
  const place = `${fleet.fleetId}/devices/${pump.deviceId}`;
  await using console = await ConsolePage.open(browser, server, { place, token: body.token });
  const { page } = console;
  await page.getByText('lock_check').first().waitFor();
  await server.admin('DELETE', `/tokens/${body.token_id}`);
  await page.getByText('This prints a code for one login').waitFor();
});

it('with a clock that is off by an hour, times are those of the server', async () => {
  const { fleet, pump } = made;
  await pump.heartbeat();
  await using console = await ConsolePage.open(browser, server);
  const { page } = console;
  await page.addInitScript(() => {
    const RealDate = Date;
    const now = (): number => RealDate.now() + 3_600_000;
    globalThis.Date = new Proxy(RealDate, {
      construct: (target, args) => Reflect.construct(target, args.length === 0 ? [now()] : args),
      get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    });
  });
  await console.go(`${fleet.fleetId}/devices/${pump.deviceId}`);
  const facts = page.getByRole('region', { name: 'Facts' });
  const lastSeen = facts.locator('dd', { has: page.locator('time') }).first();
  await lastSeen.waitFor();
  expect(await lastSeen.innerText()).toMatch(/^(now|\d+ (s|min) ago)$/);
});

it('a server that restarts is said to be away, and then what is shown goes on', async () => {
  const { fleet, pump } = made;
  const place = `${fleet.fleetId}/devices/${pump.deviceId}`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  await page.getByText('lock_check').first().waitFor();
  await server.stop();
  await page.getByText(/The server does not answer since/).waitFor();
  server = await TestServer.start(config, data);
  await page.getByText(/The server does not answer since/).waitFor({ state: 'detached' });
  const again = pump.on(server);
  await again.request('POST', '/v1/datapoint/reading', { after_restart: 1 });
  await page.getByText('after_restart').first().waitFor();
  expect(console.faults).toEqual([]);
});

it('a code that is entered opens the screen of the address, and logging out ends the session at the server', async () => {
  const { fleet, pump } = made;
  const api = `${server.report.admin_url}/admin/v1`;
  const { body } = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'reader',
    scopes: ['read'],
  });
  const context = await newContext(browser);
  const page = await context.newPage();
  const logIn = async (): Promise<string> => {
    const answer = await fetch(`${api}/console-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${body.token}`, 'content-type': 'application/json' },
      body: '{}',
    });
    const { code } = (await answer.json()) as { code: string };
    await page.getByLabel('Code or API token').fill(code);
    await page.keyboard.press('Enter');
    await page
      .getByRole('heading', { name: 'North pump' })
      .or(page.getByText(pump.deviceId).first())
      .waitFor();
    const [cookie] = await context.cookies();
    const key = await page.evaluate<string>("localStorage.getItem('fleetpost.session')");
    return `FPT-${cookie?.value}${key}`;
  };
  const statusOf = async (token: string): Promise<number> =>
    (await fetch(`${api}/self`, { headers: { authorization: `Bearer ${token}` } })).status;
  await page.goto(`${server.report.admin_url}/console/#fleet=${fleet.fleetId}&device=${pump.deviceId}`);
  await page.getByLabel('Code or API token').fill('guessed-code-of-22-ch1');
  await page.keyboard.press('Enter');
  await page.getByText('somebody else did').waitFor();
  const first = await logIn();
  expect(await statusOf(first)).toBe(200);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('You have logged out.').waitFor();
  expect(await statusOf(first)).toBe(401);

  const second = await logIn();
  await page.route('**/admin/v1/self', (route) => route.abort());
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('could not end it at the server: The server does not answer.').waitFor();
  expect(await statusOf(second)).toBe(200);
  await context.close();
});

it('the command of a link is copied without the control characters that somebody put into it', async () => {
  const { fleet } = made;
  const place = `${fleet.fleetId}/devices?q=name:%22x%03touch%20/tmp/pwn%0a%1b[201~%22`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy the CLI command' }).first().click();
  await page.getByRole('button', { name: 'Copied' }).first().waitFor();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(copied).toContain('\\x03touch');
  expect(copied).not.toMatch(/\p{Cc}/u);
});
