/** Habits of whoever has the console open all day: titles, Back, keys, the foot. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { untilNoticed } from '../harness/features/attention.ts';
import { TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser, newContext } from './browser.ts';

let server: TestServer;
let browser: Browser;
let fleet: TestFleet;
let devices: TestDevice[];
beforeAll(async () => {
  [server, browser] = await Promise.all([TestServer.start({ stuckSeconds: 1 }), launchBrowser()]);
  fleet = await createFleet(server, { name: 'Garden' });
  devices = await Promise.all(
    Array.from({ length: 60 }, (_, at) => fleet.createDevice({ device_id: `VALV0000${10 + at}` })),
  );
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

function open(place = '', token?: string): Promise<ConsolePage> {
  return ConsolePage.open(browser, server, { place: `${fleet.fleetId}${place}`, ...(token && { token }) });
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true, level: 1 });

it('a tab is named by its screen and its fleet, and by how much needs attention', async () => {
  const quiet = await createFleet(server, { name: 'Quiet' });
  await using console = await ConsolePage.open(browser, server, { place: `${quiet.fleetId}/devices` });
  const { page } = console;
  const title = (): Promise<string> => page.title();
  await expect.poll(title).toBe('Devices · Quiet · Fleetpost');
  const [device] = devices;
  if (device === undefined) throw new Error('devices were made');
  await device.sendMail('lock_check');
  await untilNoticed(fleet, /lock_check/);
  await console.go(fleet.fleetId);
  await expect.poll(title).toBe('(1) Now · Garden · Fleetpost');
  const places = [
    [`devices/${device.deviceId}`, device.deviceId],
    ['', 'Now'],
    ['access/audit', 'Access'],
    ['actions/water', 'water · Actions'],
    ['schemas/datapoint/flow', 'flow · Schemas'],
    ['nowhere', 'Not here'],
  ];
  for (const [place, name] of places) {
    await console.go(`${fleet.fleetId}/${place}`);
    await expect.poll(title).toMatch(new RegExp(`^(\\(1\\) )?${name} · Garden · Fleetpost$`));
  }
});

it('Back is at once where one was: the rows, the scroll, and the row of the keys', async () => {
  await using console = await open('/devices');
  const { page } = console;
  await page.setViewportSize({ width: 1_200, height: 600 });
  const last = devices.at(-1)?.deviceId ?? '';
  await page.getByText(last).waitFor();
  for (let step = 0; step < 50; step += 1) await page.keyboard.press('j');
  const cursor = page.locator('tr[data-cursor]');
  const id = devices[49]?.deviceId ?? '';
  await expect.poll(() => cursor.innerText()).toContain(id);
  await expect.poll(() => page.evaluate('scrollY')).toBeGreaterThan(500);
  const before = await page.evaluate<number>('scrollY');
  await page.keyboard.press('o');
  await page.waitForURL(new RegExp(`/devices/${id}$`));
  await expect.poll(() => page.evaluate('scrollY')).toBe(0);
  // It is there before the server has answered again.
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route('**/admin/v1/fleets/*/devices?*', (route) => answered.then(() => route.continue()));
  await page.goBack();
  await expect.poll(() => cursor.innerText()).toContain(id);
  await expect.poll(() => page.evaluate('scrollY')).toBe(before);
  answer();
  // Forward, and a list that is gone to anew begins at its top.
  await page.goForward();
  await page.waitForURL(new RegExp(`/devices/${id}$`));
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Devices' }).click();
  await heading(page, 'Devices').waitFor();
  await expect.poll(() => page.evaluate('scrollY')).toBe(0);
  expect(await cursor.count()).toBe(0);
  expect(console.faults).toEqual([]);
});

it('? lists the keys, those of the screen first of all', async () => {
  await using console = await open('/devices');
  const { page } = console;
  await page.getByText(devices[0]?.deviceId ?? '').waitFor();
  await page.keyboard.press('?');
  const list = page.getByRole('dialog', { name: 'Keys' });
  await list.getByText('select the row').waitFor();
  expect(await list.locator('dl > div', { hasText: 'drop dead letters' }).innerText()).toContain(
    'not on this screen',
  );
  expect(await console.violations()).toEqual([]);
  await page.keyboard.press('Escape');
  await list.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Keys' }).click();
  await list.waitFor();
  expect(console.faults).toEqual([]);
});

it('the foot is one line until it is opened, and stays as it was left', async () => {
  await using console = await open('/devices');
  const { page } = console;
  const command = page.getByText(`fleetpost device list --fleet ${fleet.fleetId}`, { exact: true });
  await command.waitFor();
  await page.getByText('As a command').click();
  await command.waitFor({ state: 'hidden' });
  expect((await page.locator('.foot').boundingBox())?.height).toBeLessThan(45);
  const second = await console.newTab();
  await second.addInitScript("localStorage.setItem('fleetpost.foot', 'closed')");
  await second.goto(page.url());
  await second.getByText('As a command').waitFor();
  expect(
    await second.getByText(`fleetpost device list --fleet ${fleet.fleetId}`, { exact: true }).isVisible(),
  ).toBe(false);
});

it('what is not there is said in a sentence, with a way to what is', async () => {
  const { items } = (await server.admin<{ items: { fleet_id: string }[] }>('GET', '/fleets')).body;
  await using console = await open('/devices/VALV00009X');
  const { page } = console;
  await page.getByText(`Fleet ${fleet.fleetId} has no device VALV00009X.`).waitFor();
  await page.getByText('Ids that begin so:').waitFor();
  await page.getByRole('link', { name: 'VALV000010' }).waitFor();
  expect(await page.getByRole('button', { name: 'Send mail' }).count()).toBe(0);
  await page.getByRole('link', { name: 'To the list' }).click();
  await heading(page, 'Devices').waitFor();
  await console.go(`${fleet.fleetId}/devices/VALV000010/mail/0199a5f0-0000-7000-8000-000000000000`);
  await page.getByRole('link', { name: 'To the device' }).waitFor();
  await console.go(`${fleet.fleetId}/nowhere`);
  await page.getByRole('link', { name: 'To the first page of the fleet' }).waitFor();
  await console.go('NOSUCHFL/devices');
  await page.getByText('There is no fleet NOSUCHFL').waitFor();
  expect(await page.getByRole('button').allInnerTexts()).toEqual(['Log out']);
  expect(await page.getByRole('listitem').count()).toBe(items.length);
  await page.getByRole('link', { name: fleet.fleetId }).click();
  await heading(page, 'Now').waitFor();
  expect(console.faults).toEqual([]);
});

it('a screen that is on its way has its shape, and nothing of the foot', async () => {
  await using console = await open();
  const { page } = console;
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/console/assets/*.js', async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole('link', { name: 'Schemas' }).click();
  await page.getByRole('status', { name: 'Loading the screen' }).waitFor();
  await heading(page, 'Schemas').waitFor();
  expect(await page.getByText('As a command').count()).toBe(0);
  release();
  await page.getByText('As a command').waitFor();
});

it('a schema that is opened is not refused for a sample that nobody wrote', async () => {
  await using console = await open('/schemas/datapoint/reading');
  const { page } = console;
  await fleet.putSchema('datapoint', 'reading', { type: 'object', required: ['rpm'] });
  await page.reload();
  await page.getByText('it is checked as you type').waitFor();
  await page
    .getByText(/steps that checking one value may take/)
    .first()
    .waitFor();
  expect(await page.getByText('It is refused').count()).toBe(0);
  await page.getByLabel('Sample').last().click();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('{"x": 1}');
  await page.getByText('It is refused').waitFor();
});

it('on a telephone who is logged in, and the way out, are in the menu, and nothing to press is small', async () => {
  const { body } = await server.admin<{ code: string }>('POST', '/console-codes', {});
  await using context = await newContext(browser, {
    viewport: { width: 390, height: 800 },
    hasTouch: true,
    isMobile: true,
  });
  const page = await context.newPage();
  await page.goto(`${server.report.admin_url}/console/${fleet.fleetId}/devices#code=${body.code}`);
  await page.getByText(devices[0]?.deviceId ?? '').waitFor();
  const small = await page.evaluate<string[]>(`
    [...document.querySelectorAll('a, button, select, summary, input, label.tick')].flatMap((one) => {
      const { width, height } = (one.closest('label.tick') ?? one).getBoundingClientRect();
      const isSmall = width > 0 && one.checkVisibility() && (width < 24 || height < 24);
      return isSmall ? one.outerHTML.slice(0, 120) + ' ' + width + ' x ' + height : [];
    })
  `);
  expect(small.filter((one) => !one.includes('skip'))).toEqual([]);
  expect(await page.locator('kbd:visible').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Log out' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Devices' }).click();
  await page.getByText('bootstrap token').waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('You have logged out.').waitFor();
});

it('the palette knows what was looked at last, and all that has a name; the first stop of the keys skips to the content', async () => {
  await fleet.putSchema('datapoint', 'pressure_of_pipes', { type: 'object' });
  await server.admin('PUT', `/fleets/${fleet.fleetId}/consumers/warehouse`, {});
  const { body } = await server.admin<{ broadcast_id: string }>(
    'POST',
    `/fleets/${fleet.fleetId}/broadcasts`,
    {
      name: 'firmware_9',
      to: { devices: ['VALV000011'] },
      payload: {},
    },
  );
  const other = await server.admin<{ fleet_id: string }>('POST', '/fleets', { name: 'Orangery' });
  await using console = await open('/devices/VALV000012');
  const { page } = console;
  const field = page.getByRole('combobox', { name: 'Go to or do' });
  const isRemembered = (id: string): Promise<void> =>
    expect.poll(() => page.evaluate("localStorage.getItem('fleetpost.recent')")).toContain(id);
  await isRemembered('VALV000012');
  await console.go(`${fleet.fleetId}/devices/VALV000013`);
  await isRemembered('VALV000013');
  await console.go(fleet.fleetId);
  await heading(page, 'Now').waitFor();
  await page.keyboard.press('Control+k');
  const options = page.locator('#palette-entries').getByRole('option');
  await options.filter({ hasText: 'VALV000013' }).waitFor();
  expect((await options.allInnerTexts()).slice(0, 2).join()).toMatch(/VALV000013.*VALV000012/s);
  // A device is first, before its mail that was looked at later, and it is there once.
  await page.keyboard.press('Escape');
  const mail = await server.admin<{ mail_id: string }>(
    'POST',
    `/fleets/${fleet.fleetId}/devices/VALV000013/mail/note`,
    {},
  );
  await console.go(`${fleet.fleetId}/devices/VALV000013/mail/${mail.body.mail_id}`);
  await isRemembered(mail.body.mail_id);
  // What is not there is no way to go.
  await console.go(`${fleet.fleetId}/broadcasts/0199aaaa-0000-7000-8000-000000000000`);
  await page.getByRole('link', { name: 'To the list' }).waitFor();
  expect(await page.evaluate("localStorage.getItem('fleetpost.recent')")).not.toContain('0199aaaa');
  await page.keyboard.press('Control+k');
  await field.fill('valv000013');
  await expect.poll(async () => (await options.allInnerTexts())[0]).toMatch(/VALV000013/);
  await expect
    .poll(async () => (await options.allInnerTexts()).map((text) => text.includes('Mail of')))
    .toEqual([false, true]);
  await field.fill('rotate');
  await options.filter({ hasText: 'New secret of a device' }).waitFor();
  const places = [
    ['of_pipes', '/schemas/datapoint/pressure_of_pipes'],
    ['warehouse', '/consumers/warehouse'],
    ['firmware_9', `/broadcasts/${body.broadcast_id}`],
    ['Orangery', `/${other.body.fleet_id}`],
  ] as const;
  for (const [text, place] of places) {
    await field.fill(text);
    await options.filter({ hasText: text }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`${place}$`));
    await field.waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
  }
  await page.keyboard.press('Escape');
  // A screen that has no field to begin in.
  await console.go(`${fleet.fleetId}/fleet`);
  await heading(page, 'Fleet').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('content');
  // Nothing of the fleet stays in the browser of who has left.
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('You have logged out.').waitFor();
  expect(await page.evaluate("localStorage.getItem('fleetpost.recent')")).toBeNull();
  expect(console.faults).toEqual([]);
});
