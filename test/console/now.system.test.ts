/** Now and the list of devices: what falls silent or is refused, the pulse, queries, order and pages. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { untilNoticed } from '../harness/features/attention.ts';
import { TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser } from './browser.ts';

const wrong = { 'X-Device-Secret': `FOS-${'0'.repeat(32)}` };

let server: TestServer;
let browser: Browser;
let fleet: TestFleet;
let devices: TestDevice[];
beforeAll(async () => {
  [server, browser] = await Promise.all([TestServer.start({ activityFlushSeconds: 1 }), launchBrowser()]);
  fleet = await createFleet(server, { name: 'Hall', active_seconds: 3 });
  devices = await Promise.all(
    Array.from({ length: 130 }, (_, index) =>
      fleet.createDevice({
        device_id: `LAMP${String(index).padStart(6, '0')}`,
        name: `Lamp ${index}`,
        tags: index % 10 === 0 ? ['hall', 'by the door'] : ['hall'],
      }),
    ),
  );
  await fleet.putSchema('datapoint', 'flow', { type: 'object', properties: { rate: { type: 'number' } } });
  await Promise.all(devices.slice(0, 12).map((device) => device.heartbeat()));
  for (const device of devices.slice(20, 22)) await device.request('POST', '/v1/heartbeat', undefined, wrong);
  // What is refused is no silence: it has called.
  await devices[11]?.request('POST', '/v1/datapoint/flow', { rate: 'much' });
});
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});

const open = (place = '', token?: string): Promise<ConsolePage> =>
  ConsolePage.open(browser, server, {
    place: `${fleet.fleetId}${place}`,
    ...(token !== undefined && { token }),
  });
const rows = (page: Page) => page.locator('tbody tr');
const search = (page: Page) => page.getByRole('combobox', { name: 'Find devices' });

it('devices that fell silent are first on Now, and the list of them is a click away', async () => {
  await untilNoticed(fleet, /^12 devices fell silent/m);
  await using console = await open();
  const { page } = console;
  const items = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem');
  const first = items.first().getByRole('link', { name: /^12 devices fell silent in the last .*since/ });
  await first.waitFor();
  expect(await first.locator('.state.is-bad').count()).toBe(1);
  await first.click();
  await page.waitForURL(/q=silent%3A1h/);
  await page.getByText('12 fit').waitFor();
  await expect.poll(() => rows(page).count()).toBe(12);
  expect(console.faults).toEqual([]);
});

it('devices that are refused are counted by reason on Now, and seen in the list, at their schema and in Live', async () => {
  await using console = await open();
  const { page } = console;
  const sentence = '3 devices are refused: wrong secret 2, schema flow 1.';
  await page.getByRole('link', { name: sentence }).click();
  await page.waitForURL(/q=refused%3Aany/);
  await page.getByRole('link', { name: 'LAMP000011' }).waitFor();
  expect(await rows(page).count()).toBe(3);
  expect(await rows(page).getByText('refused', { exact: true }).count()).toBe(3);
  expect(
    await page.getByRole('navigation', { name: 'Quick filters' }).locator('[aria-current]').innerText(),
  ).toBe('Refused');
  await console.go(`${fleet.fleetId}/devices?q=tag:hall`);
  await page
    .getByRole('row', { name: /LAMP000011/ })
    .getByText('refused')
    .waitFor();
  await console.go(`${fleet.fleetId}/devices/LAMP000020`);
  await page.getByText(/wrong secret, last tried .* ago from 127\.0\.0\.1\./).waitFor();
  const facts = page.getByRole('region', { name: 'Facts' });
  await facts.getByText('refused', { exact: true }).waitFor();
  await facts.getByText('Last tried').waitFor();
  await page.getByRole('button', { name: 'New secret…' }).click();
  await page.getByRole('dialog', { name: 'New secret' }).waitFor();
  await page.keyboard.press('Escape');
  // One that sent what fits since is no more refused, but was.
  await devices[12]?.request('POST', '/v1/datapoint/flow', { rate: 'little' });
  await devices[12]?.request('POST', '/v1/datapoint/flow', { rate: 1 });
  await console.go(`${fleet.fleetId}/schemas/datapoint/flow`);
  await page.getByText('1 device is refused now, 2 were within the hour.').waitFor();
  await page.getByRole('link', { name: 'LAMP000011' }).waitFor();
  await console.go(`${fleet.fleetId}/live`);
  await page.getByLabel('Kind').selectOption('refused');
  // From now on, nothing is: their last attempts were before the page was opened.
  await page.getByText(/None of the \d refusals of the last hour fits\./).waitFor();
  await page.getByLabel('Since').selectOption('1h');
  await page.getByText('wrong secret').first().waitFor();
  await page.getByText('/rate').first().waitFor();
  await page.getByLabel('Schema').fill('flow');
  await page.keyboard.press('Enter');
  await page.getByText('wrong secret').first().waitFor({ state: 'detached' });
  expect(console.faults).toEqual([]);
});

it('the pulse is that of the fleet, there after a load, and for a session of that fleet alone', async () => {
  const made = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'reader',
    scopes: ['read'],
    fleet_id: fleet.fleetId,
  });
  await using console = await open('', made.body.token);
  const { page } = console;
  const pulse = page.getByRole('region', { name: 'Pulse' });
  await pulse.getByRole('heading', { name: 'Requests' }).waitFor();
  await pulse.getByRole('heading', { name: 'Refused' }).waitFor();
  expect(await page.getByText('No right to this').count()).toBe(0);
  // Each state once: those with a stream are among the active ones.
  const figures = async (): Promise<[number, string | undefined]> => {
    const texts = await page.locator('.figures .figure').allInnerTexts();
    return [texts.slice(0, -1).reduce((sum, text) => sum + Number(text), 0), texts.at(-1)];
  };
  await expect.poll(figures).toEqual([130, '130']);
  expect(console.faults).toEqual([]);
});

it('a query is completed by keys, saved under a name in the browser, and forgotten', async () => {
  await using console = await open('/devices');
  const { page } = console;
  await search(page).fill('st');
  await page.getByRole('option', { name: /^state:/ }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('option', { name: /^state:offline/ }).click();
  expect(await search(page).inputValue()).toBe('state:offline');
  await search(page).fill('state:offline tag:b');
  const tag = { name: /^tag:"by the door"/ };
  await page.getByRole('option', tag).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.getByRole('option', { ...tag, selected: true }).waitFor();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=state%3Aoffline\+tag%3A%22by\+the\+door%22/);
  await page.getByRole('button', { name: 'Save this query' }).click();
  await page.getByLabel('Name').fill('Doors off');
  await page.keyboard.press('Enter');
  const chips = page.getByRole('navigation', { name: 'Quick filters' });
  await chips.getByRole('link', { name: 'All' }).click();
  await page.reload();
  await chips.getByRole('link', { name: 'Doors off' }).click();
  await page.waitForURL(/by\+the\+door/);
  await chips.getByRole('link', { name: 'Refused' }).click();
  await page.waitForURL(/tag%3A%22by\+the\+door%22\+refused%3Aany/);
  await chips.getByRole('link', { name: 'Doors off' }).click();
  await chips.getByRole('button', { name: 'Forget this query' }).click();
  await chips.getByRole('link', { name: 'Doors off' }).waitFor({ state: 'detached' });
  expect(await console.violations()).toEqual([]);
  expect(console.faults).toEqual([]);
});

it('the list has its total, goes by last sight, and back to the page before', async () => {
  await using console = await open('/devices');
  const { page } = console;
  await page.getByText('130 devices').waitFor();
  const sort = page.getByRole('columnheader', { name: 'Last seen' });
  await sort.getByRole('link').click();
  await page.waitForURL(/order=-seen/);
  await expect.poll(() => sort.getAttribute('aria-sort')).toBe('descending');
  const never = rows(page).first().getByText('never');
  await expect.poll(() => never.count()).toBe(0);
  await page.getByRole('link', { name: 'Next page' }).click();
  await expect.poll(() => rows(page).count()).toBe(30);
  await page.getByRole('link', { name: 'Previous page' }).click();
  await expect.poll(() => rows(page).count()).toBe(100);
  expect(page.url()).not.toContain('after=');
  await sort.getByRole('link').click();
  await page.waitForURL(/order=seen/);
  await expect.poll(() => never.count()).toBe(1);
  expect(console.faults).toEqual([]);
});
