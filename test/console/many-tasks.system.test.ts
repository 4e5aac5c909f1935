/** Acts on many devices and letters in a browser: the number first, a question or a way back, and what became of it. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BroadcastDocument } from '../../src/contract/broadcast.ts';
import type { ListDocument } from '../../src/contract/document.ts';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { importDevices } from '../harness/features/broadcast.ts';
import { TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser } from './browser.ts';
import { checkScreen } from './screen-check.ts';

let server: TestServer;
let browser: Browser;
let fleet: TestFleet;
beforeAll(async () => {
  [server, browser] = await Promise.all([
    TestServer.start({ broadcastMailsPerSecondMax: 2_000, mailboxMailsMax: 20 }),
    launchBrowser(),
  ]);
  fleet = await createFleet(server, { name: 'Many' });
  await importDevices(fleet, { count: 260, tags: ['hall'] });
  for (const id of ['PUMP000001', 'PUMP000002', 'PUMP000003'])
    await fleet.createDevice({ device_id: id, tags: ['pump'] });
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

const open = (place: string): Promise<ConsolePage> =>
  ConsolePage.open(browser, server, { place: `${fleet.fleetId}/${place}` });
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name });
const countOf = async (query: string): Promise<number> =>
  Number((await server.admin('GET', `/fleets/${fleet.fleetId}/devices:count?${query}`)).body.devices);
const broadcasts = async (): Promise<BroadcastDocument[]> =>
  (await server.admin<ListDocument<BroadcastDocument>>('GET', `/fleets/${fleet.fleetId}/broadcasts`)).body
    .items;

it('a few devices are disabled at once, and are enabled again by taking it back', async () => {
  await using console = await open('devices?q=tag:pump');
  const { page } = console;
  await page.getByLabel('Select PUMP000001').check();
  await page.getByLabel('Select PUMP000002').check();
  await button(page, 'Disable').click();
  await page.getByText('Disabled 2 devices.').waitFor();
  expect(await countOf('tag=pump&enabled=false')).toBe(2);
  await checkScreen(console, 'what was done last');
  await button(page, /^Undo/).click();
  await page.getByText('Undone.').waitFor();
  expect(await countOf('tag=pump&enabled=false')).toBe(0);
  expect(console.faults).toEqual([]);
});

it('many devices: their number on the button, typed before it can be pressed, and begun at Cancel', async () => {
  await using console = await open('devices?q=tag:hall');
  const { page } = console;
  await page.getByLabel('Select all on this page').check();
  await button(page, 'Select all that fit').click();
  await page.getByText('All 260 that fit tag:hall').waitFor();
  await button(page, 'Disable').click();
  const disable = button(page, 'Disable 260 devices');
  await disable.waitFor();
  await checkScreen(console, 'a question about many');
  // The number is to be typed: to press Enter does nothing.
  await page.keyboard.press('Enter');
  expect(await disable.getAttribute('aria-disabled')).toBe('true');
  await page.getByLabel('To confirm, type 260').fill('260');
  await page.keyboard.press('Enter');
  await page.getByText('Disabled 260 devices.').waitFor();
  expect(await countOf('enabled=false')).toBe(260);
  await page.keyboard.press('z');
  await page.getByText('Undone.').waitFor();
  expect(await countOf('enabled=false')).toBe(0);
  expect(console.faults).toEqual([]);
});

it('a broadcast to what filters find says how many, asks once whatever the keys, and may begin with a few', async () => {
  await using console = await open('devices?q=tag:hall state:offline');
  const { page } = console;
  await page.getByLabel('Select all on this page').check();
  await button(page, 'Select all that fit').click();
  await button(page, 'Send mail').last().click();
  await page.getByText('To 260 devices, 260 of them offline').waitFor();
  await page.getByLabel('Mail', { exact: true }).fill('update');
  await page.getByLabel('Begin with').selectOption({ label: 'the first 3 (1.2 %), then pause' });
  await button(page, /^Send to the first 3 of 260/).waitFor();
  await page.keyboard.press('Control+Enter');
  await page.getByRole('dialog', { name: 'Send update?' }).waitFor();
  await checkScreen(console, 'the question of a broadcast');
  // The focus is on Cancel.
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Send update?' }).waitFor({ state: 'detached' });
  expect(await broadcasts()).toEqual([]);
  await page.getByLabel('Mail', { exact: true }).press('Control+Enter');
  await page
    .getByRole('dialog', { name: 'Send update?' })
    .getByRole('button', { name: 'Send to the first 3 of 260' })
    .click();
  await page.getByRole('link', { name: 'See what becomes of it' }).click();
  await page.getByText('paused').first().waitFor();
  await button(page, /^Waiting\s*3$/).waitFor();
  expect(await broadcasts()).toMatchObject([{ to: { tag: ['hall'], state: 'offline' }, queued: 3 }]);
  await button(page, /^Resume/).click();
  await page.getByText('queued to all').waitFor();
  await button(page, /^Waiting\s*260$/).waitFor();
  expect(console.faults).toEqual([]);
});

it('dead letters come newest first and by kind, and a kind is dropped with its number on the button', async () => {
  const [device] = await Promise.all([fleet.createDevice({ device_id: 'DEAD000001' })]);
  for (const name of ['water', 'water', 'lock', 'water']) {
    const { mailId } = await device.sendMail(name);
    await device.settle('reject', mailId);
  }
  await using console = await open('dead-letters');
  const { page } = console;
  const kinds = page.getByLabel('By mail and reason');
  await kinds.getByRole('link', { name: /^3\s*water rejected/ }).waitFor();
  const names = page.getByRole('row').getByRole('button', { name: /^(water|lock)$/ });
  await expect.poll(() => names.allInnerTexts()).toEqual(['water', 'lock', 'water', 'water']);
  await checkScreen(console, 'kinds of dead letters');
  await kinds.getByRole('link', { name: /^3\s*water/ }).click();
  const dropAll = async (): Promise<void> => {
    await button(page, 'More to do with all').click();
    await button(page, 'Drop all 3').click();
  };
  await dropAll();
  // What destroys begins at Cancel.
  await expect.poll(() => page.evaluate("document.activeElement.closest('dialog') !== null")).toBe(true);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await dropAll();
  await button(page, 'Drop 3 letters').click();
  await page.getByText('3 dropped.').waitFor();
  // The question is still the one that was asked.
  await page.getByText('All letters that fit the filter, 3.').waitFor();
  const left = await server.admin('GET', `/fleets/${fleet.fleetId}/dead-letters:count`);
  expect(left.body).toMatchObject({ letters: 1, groups: [{ name: 'lock' }] });
  expect(console.faults).toEqual([]);
});

it('a dead letter is acted on that was clicked, wherever in its row, and no row moves while others die', async () => {
  const dying = await createFleet(server);
  const dies = async (device: TestDevice, name: string): Promise<void> => {
    const { mailId } = await device.sendMail(name);
    await device.settle('reject', mailId);
  };
  const devices = await Promise.all(
    ['DIES000001', 'DIES000002', 'DIES000003'].map((device_id) => dying.createDevice({ device_id })),
  );
  for (const device of devices) await dies(device, 'bolt');
  const [first, second] = devices as [TestDevice, TestDevice, TestDevice];
  await using console = await ConsolePage.open(browser, server, { place: `${dying.fleetId}/dead-letters` });
  const { page } = console;
  const rows = page.locator('tbody tr');
  const ids = () => rows.locator('a').allInnerTexts();
  await expect.poll(ids).toEqual(['DIES000003', 'DIES000002', 'DIES000001']);
  const place = () => rows.first().boundingBox();
  const before = await place();
  await dies(second, 'late');
  await button(page, '1 new').waitFor();
  expect(await place()).toEqual(before);
  expect(await ids()).toEqual(['DIES000003', 'DIES000002', 'DIES000001']);
  // Beside the name of the mail, which is the button.
  await rows.nth(2).getByText('rejected').click();
  await button(page, 'Replay to DIES000001').waitFor();
  await button(page, '1 new').click();
  await expect.poll(ids).toEqual(['DIES000002', 'DIES000003', 'DIES000002', 'DIES000001']);
  // The letter stays chosen, though it is in another row.
  await page.keyboard.press('r');
  await page.getByText('bolt of DIES000001: 1 replayed.').waitFor();
  expect((await first.mails()).map(({ name }) => name)).toEqual(['bolt']);
  await expect.poll(ids).toEqual(['DIES000002', 'DIES000003', 'DIES000002']);
  // One more dies after the question: the answer says with how many it was done.
  await button(page, 'Replay all 3').click();
  await dies(second, 'later');
  await button(page, 'Replay 3 letters').click();
  await page.getByText('4 replayed. There were 3 when you were asked.').waitFor();
  expect(console.faults).toEqual([]);
});

it('on a telephone what can be done with a selection is at the bottom of the screen', async () => {
  await using console = await open('devices');
  const { page } = console;
  await page.setViewportSize({ width: 390, height: 844 });
  await page
    .getByLabel(/^Select [A-Z0-9]{10}$/)
    .first()
    .check();
  const bottom = async (): Promise<number> => {
    const box = await page.getByRole('region', { name: 'Selected devices' }).boundingBox();
    return (box?.y ?? 0) + (box?.height ?? 0);
  };
  await expect.poll(bottom).toBe(844);
  const send = await button(page, 'Send mail').last().boundingBox();
  expect(send?.y).toBeLessThan(844);
});
