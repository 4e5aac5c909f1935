/** What a page asks the server for while nobody touches it. */

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser } from './browser.ts';
import { createDeskFleet, type DeskFleet, deskConfig } from './desk-fleet.ts';

/** Requests of a screen within a minute. What must be fresher comes as a stream, which is one. */
const perMinuteMax = 12;
/** Screens that tell of differences ask a few times in a row at first; a mail is watched closely for a minute. */
const settleMs = 12_000;
const newMailMs = 60_000;

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

/** Counts what an open screen asks for within a minute, once it has settled, and closes it. */
async function requestsOf(opened: ConsolePage): Promise<number> {
  await using console = opened;
  await console.page.waitForTimeout(console.page.url().includes('/mail/') ? newMailMs : settleMs);
  let count = 0;
  console.page.on('request', (request) => {
    if (request.url().includes('/admin/v1/')) count += 1;
  });
  await console.page.waitForTimeout(60_000);
  expect(console.faults).toEqual([]);
  expect(await console.page.getByRole('button', { name: 'Log out' }).count(), console.page.url()).toBe(1);
  return count;
}

it('a screen that nobody touches asks at most 12 times a minute', async () => {
  const device = await desk.fleet.createDevice();
  const { mailId } = await device.sendMail();
  const screens = [
    '',
    'devices',
    `devices/${device.deviceId}`,
    'live',
    'dead-letters',
    'broadcasts',
    `broadcasts/${desk.doneId}`,
    `broadcasts/${desk.pausedId}`,
    'consumers',
    'forwarders/lost',
    'actions',
    'schemas',
    'fleet',
    'access',
    'access/claim-tokens',
    'server',
    `devices/${device.deviceId}/mail/${mailId}`,
  ];
  const counted: Promise<readonly [string, number]>[] = [];
  for (const screen of screens) {
    // One after another: of eleven codes for a login at once the first is none any more, and its screen asks for nothing.
    const console = await ConsolePage.open(browser, server, { place: `${desk.fleet.fleetId}/${screen}` });
    counted.push(requestsOf(console).then((count) => [screen, count] as const));
  }
  const counts = await Promise.all(counted);
  expect(counts.filter(([, count]) => count > perMinuteMax)).toEqual([]);
});

it('what becomes of the mail of a device is seen at once, though its page asks rarely', async () => {
  const device = await desk.fleet.createDevice();
  const place = `${desk.fleet.fleetId}/devices/${device.deviceId}`;
  await using console = await ConsolePage.open(browser, server, { place });
  const { page } = console;
  const mailbox = page.getByRole('region', { name: 'Mailbox' });
  await mailbox.getByText('No mail waits.').waitFor();
  await page.getByText('live', { exact: true }).waitFor();
  const { mailId } = await device.sendMail('hello');
  // The page asks by itself after half a minute.
  await mailbox.getByText('hello').waitFor({ timeout: 15_000 });
  await device.settle('ack', mailId);
  await mailbox.getByText('No mail waits.').waitFor({ timeout: 15_000 });
  expect(console.faults).toEqual([]);
});
