import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet } from '../harness/devices/device.ts';
import { TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser } from './browser.ts';
import { type ConsoleFleet, createConsoleFleet, hostileTexts } from './console-fleet.ts';
import { checkScreen as check } from './screen-check.ts';

let server: TestServer;
let browser: Browser;
let made: ConsoleFleet;
beforeAll(async () => {
  [server, browser] = await Promise.all([TestServer.start({ activityFlushSeconds: 1 }), launchBrowser()]);
  made = await createConsoleFleet(server);
});
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});

interface Screen {
  name: string;
  place: () => string;
  /** Waits until it is drawn with what it is about. */
  ready: (page: Page) => Promise<unknown>;
}

const seen = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();
const fleetId = (): string => made.fleet.fleetId;
const screens: Screen[] = [
  {
    name: 'Now',
    place: () => fleetId(),
    ready: async (page) => {
      await seen(page, 'Offline');
      await seen(page, 'Requests');
    },
  },
  {
    name: 'Devices',
    place: () => `${fleetId()}/devices?q=tag:hall`,
    ready: async (page) => {
      await seen(page, 'LAMP000003');
      await page.getByLabel('Select LAMP000003').check();
    },
  },
  {
    name: 'Device',
    place: () => `${fleetId()}/devices/${made.pump.deviceId}`,
    ready: async (page) => {
      await seen(page, 'lock_check');
      await seen(page, /its datapoints do not match schema flow/);
      await seen(page, 'Last refusals');
    },
  },
  {
    name: 'Device of a hostile one',
    place: () => `${fleetId()}/devices/${made.hostile.deviceId}`,
    ready: (page) => seen(page, hostileTexts[0]),
  },
  {
    name: 'Mail',
    place: () => `${fleetId()}/devices/${made.pump.deviceId}/mail/${made.mailId}`,
    ready: async (page) => {
      await seen(page, 'Not answered yet');
      await seen(page, '"north"');
    },
  },
  {
    name: 'Live',
    place: () => `${fleetId()}/live?since=1d`,
    ready: async (page) => {
      // The deepest, the longest and the one with the most keys are all opened.
      await seen(page, 'celsius');
      // To the millisecond, as the clock has it: beside "now" in every row no order is seen.
      await seen(page, /^\d\d:\d\d:\d\d\.\d{3}$/);
      for (const button of (await page.locator('button.record').all()).slice(0, 12)) await button.click();
    },
  },
  {
    name: 'Dead letters',
    place: () => `${fleetId()}/dead-letters`,
    ready: (page) => seen(page, '9007199254740993'),
  },
];

it('what the first page loads is small', () => {
  const folder = new URL('../../dist/console/', import.meta.url).pathname;
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  const bytesOf = (ending: string): number =>
    [...page.matchAll(/"\/console\/(assets\/[^"]+)"/g)]
      .filter(([, file = '']) => file.endsWith(ending))
      .reduce((sum, [, file = '']) => sum + statSync(join(folder, `${file}.gz`)).size, 0);
  expect(bytesOf('.js')).toBeLessThan(45_000);
  expect(bytesOf('.css')).toBeLessThan(12_000);
});

it.each(screens)('$name: no fault, and WCAG 2.2 AA, in light and dark, narrow and wide', async (screen) => {
  await using console = await ConsolePage.open(browser, server, { place: screen.place() });
  await screen.ready(console.page);
  await check(console, screen.name);
});

it('the drawer that sends a mail, by form and by JSON', async () => {
  const place = `${fleetId()}/devices/${made.pump.deviceId}`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  await seen(page, 'lock_check');
  await page.keyboard.press('s');
  await page.getByLabel('Mail', { exact: true }).fill('set_speed');
  await page.getByLabel(/^rpm/).waitFor();
  await check(console, 'Send');
});

it('a fleet that is new shows the first steps, and one that is not there says so', async () => {
  const fleet = await createFleet(server);
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  await seen(console.page, 'Make the first device');
  await check(console, 'first steps');
  await console.go('NOSUCHFL/devices');
  await seen(console.page, 'There is no fleet NOSUCHFL, or your session has no right to it.');
  await console.page.getByRole('link', { name: fleet.fleetId }).waitFor();
});

it('the page of who is not logged in says how to', async () => {
  await using console = await ConsolePage.open(browser, server, { token: 'FPT-none' });
  await seen(console.page, 'fleetpost console');
  await check(console, 'Welcome');
});

it('the payloads of hostile devices are text, exact, and cut until all is asked for', async () => {
  const place = `${fleetId()}/live?since=1d&device=${made.hostile.deviceId}&kind=message`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  await seen(page, '"counter": 9007199254740993, "exact": 1.10');
  expect(await page.getByText('U+202E').count()).toBe(1);
  await page.locator('button.record', { hasText: '"text": "xxx' }).click();
  const payload = page.getByLabel('Payload', { exact: true });
  expect((await payload.innerText()).length).toBeLessThan(17_000);
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect.poll(async () => (await payload.innerText()).length).toBeGreaterThan(60_000);
  expect(console.faults).toEqual([]);
});
