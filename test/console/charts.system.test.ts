/** The numbers of a device in a browser: what a chart shows, when, and how it is looked at. */

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { TestServer } from '../harness/server/server.ts';
import { ConsolePage, launchBrowser } from './browser.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

let server: TestServer;
let browser: Browser;
let fleet: TestFleet;
beforeAll(async () => {
  [server, browser] = await Promise.all([TestServer.start(), launchBrowser()]);
  fleet = await createFleet(server, { name: 'Greenhouse' });
  for (const schema of ['climate', 'power']) await fleet.putSchema('datapoint', schema, { type: 'object' });
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

/** Sends a datapoint as one of so long ago. */
async function send(device: TestDevice, schema: string, payload: object, ageMs = 0): Promise<void> {
  const headers = ageMs === 0 ? {} : { 'Recorded-At': new Date(Date.now() - ageMs).toISOString() };
  const { status } = await device.request('POST', `/v1/datapoint/${schema}`, payload, headers);
  expect(status).toBe(201);
}

async function open(device: TestDevice, parameters = ''): Promise<ConsolePage> {
  return ConsolePage.open(browser, server, {
    place: `${fleet.fleetId}/devices/${device.deviceId}${parameters}`,
  });
}

const chart = (page: Page, label: string): Locator => page.locator('figure').filter({ hasText: label });

/** Points at a place of a chart, 0 its left end, and returns what it says. */
async function pointAt(page: Page, label: string, share: number): Promise<string> {
  const over = chart(page, label).locator('.u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (box === null) throw new Error('the chart is not drawn');
  await page.mouse.move(box.x + 1 + share * (box.width - 2), box.y + box.height / 2);
  return (await chart(page, label).locator('figcaption').textContent()) ?? '';
}

/** The time that a chart says of a place, in the time zone of the page. */
async function timeAt(page: Page, label: string, share: number): Promise<number> {
  const text = await pointAt(page, label, share);
  const [time] = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.exec(text) ?? [];
  if (time === undefined) throw new Error(`no time in ${text}`);
  return page.evaluate((local) => new Date(local.replace(' ', 'T')).getTime(), time);
}

it('one datapoint alone is a chart of the hour that was asked for, up to now, with its value and its age', async () => {
  const device = await fleet.createDevice();
  await send(device, 'climate', { celsius: 21.4 }, 30 * minuteMs);
  await using console = await open(device);
  const { page } = console;
  const caption = chart(page, 'climate celsius').locator('figcaption');
  await page.mouse.move(0, 0);
  await expect.poll(() => caption.textContent()).toMatch(/21\.4\s*3\d min ago/);
  for (const [span, ms] of [
    ['1 h', hourMs],
    ['7 d', 168 * hourMs],
  ] as const) {
    await page.getByRole('button', { name: span, exact: true }).click();
    await expect
      .poll(async () => Math.abs((await timeAt(page, 'climate celsius', 0)) - (Date.now() - ms)))
      .toBeLessThan(ms / 20);
    expect(Math.abs((await timeAt(page, 'climate celsius', 1)) - Date.now())).toBeLessThan(ms / 20);
  }
  expect(new URL(page.url()).searchParams.get('span')).toBe('7d');
  // What is measured is drawn: something of the accent's colour stands in the middle of the hour.
  await page.getByRole('button', { name: '1 h', exact: true }).click();
  await expect.poll(() => pointAt(page, 'climate celsius', 0.5)).toMatch(/21\.4/);
  expect(console.faults).toEqual([]);
});

it('the pointer tells value, smallest, largest and time, in all charts of the page at once; a gap has no value', async () => {
  const device = await fleet.createDevice();
  // Silent from 40 to 20 minutes ago.
  for (let age = 59; age >= 1; age -= 1) {
    if (age < 40 && age > 20) continue;
    await send(device, 'climate', { celsius: age, humidity: 40 }, age * minuteMs);
    await send(device, 'climate', { celsius: age + 2, humidity: 50 }, age * minuteMs);
  }
  await using console = await open(device);
  const { page } = console;
  await chart(page, 'climate humidity').locator('.u-over').waitFor();
  // Near 50 minutes ago, where there is a point at most a minute away.
  await expect
    .poll(() => pointAt(page, 'climate celsius', 10 / 60))
    .toMatch(/celsius[\d.]+ [\d.]+ to [\d.]+, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  await expect
    .poll(() => chart(page, 'climate humidity').locator('figcaption').textContent())
    .toMatch(/humidity45 40 to 50, \d{4}/);
  await expect.poll(() => pointAt(page, 'climate celsius', 0.5)).toMatch(/celsius– \d{4}/);
  await page.mouse.move(0, 0);
  await expect
    .poll(() => chart(page, 'climate humidity').locator('figcaption').textContent())
    .toMatch(/50.*ago/);
  expect(console.faults).toEqual([]);
});

it('drawing over a part zooms into it, in the address; Back is the way out, and a span can be typed', async () => {
  const device = await fleet.createDevice();
  for (let age = 50; age >= 2; age -= 2) await send(device, 'climate', { celsius: age }, age * minuteMs);
  await using console = await open(device);
  const { page } = console;
  const over = chart(page, 'climate celsius').locator('.u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (box === null) throw new Error('the chart is not drawn');
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width / 4, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, y, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/from=.*to=/);
  const spanOf = (): number => {
    const { searchParams } = new URL(page.url());
    return Date.parse(searchParams.get('to') ?? '') - Date.parse(searchParams.get('from') ?? '');
  };
  expect(Math.abs(spanOf() - 15 * minuteMs)).toBeLessThan(minuteMs);
  await expect
    .poll(async () => (await timeAt(page, 'climate celsius', 1)) - (await timeAt(page, 'climate celsius', 0)))
    .toBeLessThan(16 * minuteMs);
  await page.reload();
  await expect
    .poll(async () => (await timeAt(page, 'climate celsius', 1)) - (await timeAt(page, 'climate celsius', 0)))
    .toBeLessThan(16 * minuteMs);
  const field = (label: string): Locator => page.getByLabel(label, { exact: true });
  const to = await field('To').inputValue();
  const fromText = await page.evaluate((text) => {
    const date = new Date(new Date(text).getTime() - 5 * 60_000);
    const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
    return local.toISOString().slice(0, 19).replace('T', ' ');
  }, to);
  await field('From').fill(fromText);
  await page.keyboard.press('Enter');
  await expect.poll(() => Math.abs(spanOf() - 5 * minuteMs)).toBeLessThan(2_000);
  await page.goBack();
  await expect.poll(() => new URL(page.url()).search).toBe('');
  await expect
    .poll(async () => (await timeAt(page, 'climate celsius', 1)) - (await timeAt(page, 'climate celsius', 0)))
    .toBeGreaterThan(50 * minuteMs);
  expect(console.faults).toEqual([]);
});

it('a span is typed without a pointer, kept in the address, and says what is wrong with it', async () => {
  const device = await fleet.createDevice();
  await send(device, 'climate', { celsius: 21.4 }, 90 * minuteMs);
  await using console = await open(device);
  const { page } = console;
  const charts = page.getByRole('region', { name: 'Charts' });
  const field = (label: string): Locator => charts.getByLabel(label, { exact: true });
  await charts.getByRole('button', { name: 'Custom' }).focus();
  await page.keyboard.press('Enter');
  const address = (): string => new URL(page.url()).search;
  await expect.poll(address).toMatch(/from=.*to=/);
  const before = address();
  const alert = charts.getByRole('alert');
  const type = async (label: string, text: string): Promise<void> => {
    await field(label).focus();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type(text);
    await page.keyboard.press('Enter');
  };
  for (const [label, text, says] of [
    ['From', 'yesterday', /^From is no time\. It can be 2026-/],
    ['From', '2026-02-30 12:00', /^From is no time/],
    ['From', '2099-01-01', /^From is to come yet\.$/],
    ['From', '2026-01-01', undefined],
    ['To', '2025-12-31 23:59', /^To is not after From\.$/],
  ] as const) {
    await type(label, text);
    if (says === undefined) await expect.poll(address).not.toBe(before);
    else await expect.poll(() => alert.textContent()).toMatch(says);
    expect(await field(label).getAttribute('aria-invalid')).toBe(String(says !== undefined));
    // Where it is mended.
    expect(await charts.locator(`input:focus[name=${label.toLowerCase()}]`).count()).toBe(1);
  }
  expect(await field('To').inputValue()).toBe('2025-12-31 23:59');
  await field('From').fill('2 h ago');
  await type('To', 'now');
  await expect.poll(() => chart(page, 'climate celsius').count()).toBe(1);
  expect(await alert.textContent()).toBe('');
  const kept = address();
  await page.reload();
  await expect.poll(() => field('To').inputValue()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?$/);
  expect(address()).toBe(kept);
  await charts.getByRole('button', { name: '24 h', exact: true }).click();
  await expect.poll(address).toBe('?span=24h');
  await console.go(`${fleet.fleetId}/devices/${device.deviceId}?from=x&to=y`);
  await charts.getByText('The address has no span that can be shown: this is the last 1 h.').waitFor();
  expect(console.faults).toEqual([]);
});

it('the schema that it last sent is charted first, however long ago, and its latest values stand above with their ages', async () => {
  const device = await fleet.createDevice();
  await send(device, 'climate', { celsius: 20 }, 3 * hourMs);
  await send(device, 'power', { watts: 7.25, mode: 'eco' }, 2 * hourMs);
  await using console = await open(device);
  const { page } = console;
  const values = page.getByRole('region', { name: 'Latest values' });
  await expect
    .poll(() => values.textContent())
    .toMatch(/power watts7\.25 2 h ago.*mode\s*eco 2 h ago.*climate celsius20 3 h ago/);
  await page.getByText('No numbers in this time. The last datapoint is of 2 h ago.').waitFor();
  await page.getByRole('button', { name: '24 h', exact: true }).click();
  await expect
    .poll(() => chart(page, 'power watts').locator('figcaption').textContent())
    .toMatch(/7\.25.*2 h ago/);
  await page.getByLabel('Schema', { exact: true }).selectOption('climate');
  await chart(page, 'climate celsius').waitFor();
  expect(new URL(page.url()).search).toBe('?span=24h&schema=climate');
  expect(console.faults).toEqual([]);
});

it('a span of which retention has taken a part says so', async () => {
  const short = await createFleet(server, { log_retention_seconds: 7_200 });
  await short.putSchema('datapoint', 'climate', { type: 'object' });
  const device = await short.createDevice();
  await send(device, 'climate', { celsius: 20 });
  await using console = await ConsolePage.open(browser, server, {
    place: `${short.fleetId}/devices/${device.deviceId}?span=24h`,
  });
  const { page } = console;
  const sentence = page.getByText('Records of this fleet are kept for 2 h: older ones are gone.');
  await sentence.waitFor();
  await page.getByRole('button', { name: '1 h', exact: true }).click();
  await sentence.waitFor({ state: 'detached' });
  expect(console.faults).toEqual([]);
});

it('the timeline has the newest first at once, then what comes; nothing is asked for from long ago', async () => {
  const device = await fleet.createDevice();
  for (let n = 0; n < 120; n += 1) await send(device, 'climate', { n });
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  const asked: URL[] = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (/\/records(:latest)?$/.test(url.pathname) && url.searchParams.get('device') === device.deviceId)
      asked.push(url);
  });
  await page.getByLabel('Find devices').fill(device.deviceId);
  await page.keyboard.press('Enter');
  const timeline = page.getByRole('region', { name: 'Timeline' });
  const rows = timeline.locator('li');
  await timeline.getByText('live', { exact: true }).waitFor();
  const first = (): Promise<string> => rows.first().innerText();
  await expect.poll(first).toContain('{"n": 119}');
  await expect.poll(() => rows.count()).toBe(50);
  await send(device, 'climate', { n: 'new' });
  await expect.poll(first).toContain('{"n": "new"}');
  await expect.poll(() => rows.nth(1).innerText()).toContain('{"n": 119}');
  for (const url of asked) expect(url.searchParams.get('from')).toBeNull();
  await timeline.getByRole('button', { name: 'Read older ones' }).click();
  await expect.poll(() => rows.count()).toBe(121);
  expect(console.faults).toEqual([]);
});
