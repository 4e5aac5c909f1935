/** Screens of operators in a browser: accessibility, sizes, colours, and what a fleet without data shows. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet } from '../harness/devices/device.ts';
import { fleetpostProcess } from '../harness/server/command.ts';
import { engine, TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser } from './browser.ts';
import { createDeskFleet, type DeskFleet, deskConfig } from './desk-fleet.ts';
import { checkScreen } from './screen-check.ts';

let server: TestServer;
let browser: Browser;
let desk: DeskFleet;
beforeAll(async () => {
  [server, browser] = await Promise.all([TestServer.start(deskConfig), launchBrowser()]);
  desk = await createDeskFleet(server);
});
afterAll(async () => {
  await desk.receiver.close();
  await browser.close();
  await server[Symbol.asyncDispose]();
});

const seen = (page: Page, text: string): Promise<void> => page.getByText(text).first().waitFor();

interface DeskScreen {
  name: string;
  /** After the fleet. */
  place: () => string;
  /** Texts on it once it is drawn. */
  texts: readonly (string | RegExp)[];
  ready?: (page: Page) => Promise<unknown>;
}

const screens: DeskScreen[] = [
  {
    name: 'Broadcasts',
    place: () => 'broadcasts',
    texts: ['firmware_2_4', 'paused', '4 failed', '1 acknowledged, 5 waiting'],
  },
  {
    name: 'Broadcast',
    place: () => `broadcasts/${desk.doneId}`,
    texts: ['Acknowledged', 'Took', '"2.4.0"'],
    ready: async (page) => {
      await page.getByRole('button', { name: /^Not queued/ }).click();
      await seen(page, 'no such device');
      await seen(page, 'NOBODY0001');
    },
  },
  { name: 'Consumers', place: () => 'consumers', texts: ['warehouse', 'retrying', 'billing', /unreachable/] },
  { name: 'Consumer', place: () => 'consumers/billing', texts: ['Lease', 'Position'] },
  {
    name: 'Forwarder',
    place: () => 'forwarders/lost',
    texts: [/unreachable.*the next attempt is/, 'None: its destination', 'In failed attempts'],
  },
  { name: 'Tokens', place: () => 'access', texts: ['dashboard', '<img src=x'] },
  { name: 'New token', place: () => 'access/tokens?new=1', texts: ['Make the token'] },
  { name: 'Claim tokens', place: () => 'access/claim-tokens', texts: ['<b>new</b>', '0 of 100'] },
  {
    name: 'Sessions',
    place: () => 'access/sessions',
    texts: ['(this one)', /^Headless Chrome \d+, Linux$/, '127.0.0.1'],
  },
  {
    name: 'Audit log',
    place: () => 'access/audit',
    texts: [/made the token \S/, 'started a broadcast'],
    ready: (page) =>
      page
        .getByRole('button', { name: /made the token/ })
        .first()
        .click(),
  },
  { name: 'Fleet', place: () => 'fleet', texts: ['Mails in a mailbox', 'its own'] },
  {
    name: 'Server',
    place: () => 'server',
    texts: [
      ...['Commits/s', /certificate ends/, 'forwardHosts', 'of one core', /^[\d.]+ (MiB|GiB)$/],
      ...['Last hour', 'p99', /^Shaded: before this node started/],
      engine === 'lmdb' ? 'None yet.' : 'The data is in a database',
    ],
  },
  {
    name: 'Palette',
    place: () => 'broadcasts',
    texts: ['firmware_2_4'],
    ready: async (page) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('option', { name: /New broadcast/ }).waitFor();
    },
  },
];

it.each(screens)('$name: no fault, and WCAG 2.2 AA, in light and dark, narrow and wide', async (screen) => {
  const place = `${desk.fleet.fleetId}/${screen.place()}`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  for (const text of screen.texts) await page.getByText(text).first().waitFor();
  await screen.ready?.(page);
  await checkScreen(console, screen.name);
});

it('the list of screens opens where there is no room for it, by keys too, and closes with a step', async () => {
  await using console = await ConsolePage.open(browser, server, { place: desk.fleet.fleetId });
  const { page } = console;
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole('button', { name: /^Now/ }).press('Enter');
  const link = page.getByRole('link', { name: 'Server', exact: true });
  await link.waitFor();
  expect(await console.violations()).toEqual([]);
  await page.keyboard.press('Escape');
  await link.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: /^Now/ }).press('Enter');
  await link.press('Enter');
  await page.getByRole('heading', { name: 'Server', exact: true }).waitFor();
  await link.waitFor({ state: 'hidden' });
  expect(console.faults).toEqual([]);
});

it('each screen names its page of the documents, which the command prints', async () => {
  await using console = await ConsolePage.open(browser, server, { place: desk.fleet.fleetId });
  const { page } = console;
  const topics = new Set<string>();
  const links = page.getByRole('navigation', { name: 'Screens' }).getByRole('link');
  for (let index = 0; index < (await links.count()); index += 1) {
    await links.nth(index).click();
    topics.add(await page.locator('.is-docs code').innerText());
  }
  expect(topics.size).toBeGreaterThan(6);
  for (const command of topics) {
    const { status, stdout } = await fleetpostProcess(command.split(' ').slice(1));
    expect([command, status]).toEqual([command, 0]);
    expect(stdout).toMatch(/^# .+/);
  }
});

it('a fleet with nothing in it says of each screen what it is for', async () => {
  const { fleetId } = await createFleet(server);
  await using console = await ConsolePage.open(browser, server, { place: `${fleetId}/broadcasts` });
  const { page } = console;
  await page.getByText('No broadcast yet.').waitFor();
  await checkScreen(console, 'no broadcast');
  await console.go(`${fleetId}/consumers`);
  await page.getByText('No forwarder yet.').waitFor();
  await page.getByText('No consumer yet.').waitFor();
  await console.go(`${fleetId}/access/claim-tokens`);
  await page.getByText('No claim token in this fleet.').waitFor();
  await console.go(`${fleetId}/broadcasts/01890000-0000-7000-8000-000000000000`);
  await page.getByRole('alert').waitFor();
  await console.go(`${fleetId}/nowhere`);
  await page.getByText('There is no screen at this address.').waitFor();
  expect(console.faults).toEqual([]);
});

it('what a reader may not do is there, disabled or said, with the name of the scope', async () => {
  const { fleetId } = desk.fleet;
  const { body } = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'reader',
    scopes: ['read'],
  });
  const place = `${fleetId}/broadcasts/${desk.pausedId}`;
  await using console = await ConsolePage.open(browser, server, { place, token: body.token });
  const { page } = console;
  const titleOf = (name: string): Promise<string | null> =>
    page.getByRole('button', { name }).first().getAttribute('title');
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  expect(await titleOf('Resume')).toBe('Your session lacks the scope mail.');
  await console.go(`${fleetId}/forwarders/lost`);
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  expect(await titleOf('Pause')).toBe('Your session lacks the scope admin.');
  for (const part of ['access', 'access/audit', 'server']) {
    await console.go(`${fleetId}/${part}`);
    const why = part === 'server' ? 'lacks the scope admin, which' : 'This token lacks the scope admin.';
    await page.getByText(why).waitFor();
    await checkScreen(console, `${part} of a reader`);
  }
  await page.keyboard.press('Control+k');
  const option = page.getByRole('option', { name: /Make a token/ });
  expect(await option.getAttribute('aria-disabled')).toBe('true');
});
