/** Getting in and staying in: tabs, restarts of the browser, links, tokens, and the end of a session. */

import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestFleet } from '../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { as } from '../harness/server/token.ts';
import { ConsolePage, launchBrowser, launchOptions, newContext } from './browser.ts';

let server: TestServer;
let browser: Browser;
let fleet: TestFleet;
beforeAll(async () => {
  [server, browser] = await Promise.all([TestServer.start(), launchBrowser()]);
  const fleets = [await createFleet(server), await createFleet(server), await createFleet(server)];
  // Not the one that a list begins with.
  [, , fleet] = fleets.sort((a, b) => (a.fleetId < b.fleetId ? -1 : 1)) as [TestFleet, TestFleet, TestFleet];
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

const origin = (): string => server.report.admin_url;
const consoleUrl = (place = ''): string => `${origin()}/console/${place}`;

interface Made {
  token: string;
  token_id: string;
}

async function makeToken(scopes: string[], name = 'Anna'): Promise<Made> {
  return (await server.admin<Made>('POST', '/tokens', { name, scopes })).body;
}

async function codeOf(token: string = server.token): Promise<string> {
  return String((await as(server, token, 'POST', '/console-codes', {})).body.code);
}

const field = (page: Page) => page.getByLabel('Code or API token');
const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true, level: 1 });

async function enter(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await page.keyboard.press('Enter');
}

/** Addresses in the history of a tab. */
async function historyOf(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const { entries } = await session.send('Page.getNavigationHistory');
  return entries.map(({ url }) => url);
}

it('one login is for all tabs: a second one, Ctrl and a click, a reload', async () => {
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  const second = await console.newTab();
  await second.goto(consoleUrl(`${fleet.fleetId}/devices`));
  await heading(second, 'Devices').waitFor();
  // Playwright loses some tabs that a click opens where their opener may not reach them (COOP): that the browser is left to
  // open one is looked at, and a tab of the same address.
  await page.evaluate(
    "addEventListener('click', (event) => { window.isPrevented = event.defaultPrevented; })",
  );
  await page.getByRole('link', { name: 'Schemas' }).click({ modifiers: ['Control'] });
  expect(await page.evaluate('isPrevented')).toBe(false);
  expect(page.url()).toBe(consoleUrl(fleet.fleetId));
  const third = await console.newTab();
  await third.goto(consoleUrl(`${fleet.fleetId}/schemas`));
  await heading(third, 'Schemas').waitFor();
  await page.reload();
  await heading(page, 'Now').waitFor();
  const key = await page.evaluate<string>("localStorage.getItem('fleetpost.session')");
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
  expect(await page.evaluate('document.cookie')).toBe('');
  expect(key).not.toBe(cookie?.value);
  expect(console.faults).toEqual([]);
});

it('a browser that is closed and opened again is logged in', async () => {
  const folder = temporaryFolder();
  const first = await chromium.launchPersistentContext(folder, launchOptions);
  const page = await first.newPage();
  await page.goto(`${consoleUrl(fleet.fleetId)}#code=${await codeOf()}`);
  await heading(page, 'Now').waitFor();
  await expect.poll(() => page.evaluate("localStorage.getItem('fleetpost.fleet')")).toBe(fleet.fleetId);
  await first.close();
  const again = await chromium.launchPersistentContext(folder, launchOptions);
  const reopened = await again.newPage();
  await reopened.goto(consoleUrl());
  await heading(reopened, 'Now').waitFor();
  // The fleet that was looked at, not the first of the alphabet.
  expect(reopened.url()).toBe(consoleUrl(fleet.fleetId));
  await again.close();
  rmSync(folder, { recursive: true, force: true });
});

it('a link that is pasted into the open page logs in, and its code is in no address', async () => {
  await using context = await newContext(browser);
  const page = await context.newPage();
  await page.goto(consoleUrl());
  await field(page).waitFor();
  const code = await codeOf();
  // As an address that is typed and differs in its fragment alone.
  await page.evaluate(
    `location.href = ${JSON.stringify(`${consoleUrl()}#code=${code}&fleet=${fleet.fleetId}`)}`,
  );
  await heading(page, 'Now').waitFor();
  expect(page.url()).toBe(consoleUrl(fleet.fleetId));
  expect((await historyOf(page)).join(' ')).not.toContain('code');
  // One that is used already leaves the session as it is, and is said.
  await page.evaluate(`location.hash = ${JSON.stringify(`code=${code}`)}`);
  await page.getByText('The link did not log in').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.reload();
  await heading(page, 'Now').waitFor();
});

it('a colleague pastes a token, or is invited by a link, without any command', async () => {
  const { token } = await makeToken(['read']);
  await using one = await newContext(browser);
  const page = await one.newPage();
  await page.goto(consoleUrl(`${fleet.fleetId}/devices`));
  await enter(page, 'FPT-WRONG');
  await page.getByText('This token does not exist or was revoked.').waitFor();
  await enter(page, token);
  await heading(page, 'Devices').waitFor();
  await page.locator('.who', { hasText: 'Anna' }).waitFor();
  const stored = await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
  expect(stored).not.toContain(token);

  await using admin = await ConsolePage.open(browser, server, {
    place: `${fleet.fleetId}/access/tokens?new=1`,
  });
  await admin.page.getByLabel('Name').fill('Ben');
  await admin.page.getByRole('button', { name: 'Make the token' }).click();
  const link = await admin.page.locator('pre', { hasText: '#token=' }).innerText();
  expect(await admin.violations()).toEqual([]);
  await using other = await newContext(browser);
  const invited = await other.newPage();
  await invited.goto(link);
  await invited.locator('.who', { hasText: 'Ben' }).waitFor();
  expect(invited.url()).toBe(consoleUrl(fleet.fleetId));
  expect((await historyOf(invited)).join(' ')).not.toContain('FPT-');
});

it('after the login one is where one wanted to go, also when the link of the login says nothing of it', async () => {
  const wanted = consoleUrl(`${fleet.fleetId}/devices?q=tag%3Ahall`);
  for (const way of ['code', 'link'] as const) {
    await using context = await newContext(browser);
    const page = await context.newPage();
    await page.goto(wanted);
    await field(page).waitFor();
    if (way === 'code') await enter(page, await codeOf());
    else await page.goto(`${consoleUrl()}#code=${await codeOf()}`);
    await heading(page, 'Devices').waitFor();
    expect(page.url(), way).toBe(wanted);
  }
});

it('logging out with a token that only reads ends the session at the server, and in the other tabs', async () => {
  const { token } = await makeToken(['read']);
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId, token });
  const { page } = console;
  const second = await console.newTab();
  await second.goto(consoleUrl(fleet.fleetId));
  await heading(second, 'Now').waitFor();
  const [cookie] = await page.context().cookies();
  const key = await page.evaluate<string>("localStorage.getItem('fleetpost.session')");
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('You have logged out.').waitFor();
  await second.getByText('You have logged out in another tab.').waitFor();
  expect((await as(server, `FPT-${cookie?.value}${key}`, 'GET', '/self')).status).toBe(401);
  expect(await page.context().cookies()).toEqual([]);
  // A login in one is one in all.
  await enter(page, await codeOf());
  await heading(second, 'Now').waitFor();
});

it('a session that ends says why and keeps what was being written; after a login one goes on there', async () => {
  const parent = await makeToken(['admin']);
  const device = await fleet.createDevice();
  const place = `${fleet.fleetId}/devices/${device.deviceId}`;
  await using console = await ConsolePage.open(browser, server, { place, token: parent.token });
  const { page } = console;
  await page.getByRole('button', { name: 'Send mail' }).click();
  await page.getByLabel('Mail', { exact: true }).fill('half_written');
  const { items } = (
    await server.admin<{ items: { kind: string; parent_id: string; token_id: string }[] }>(
      'GET',
      '/tokens?limit=1000',
    )
  ).body;
  const session = items.find(({ parent_id }) => parent_id === parent.token_id);
  await server.admin('DELETE', `/tokens/${session?.token_id}`);
  await page.getByText('Your session has ended (revoked, or 20 later logins with its token).').waitFor();
  await page.getByText('What you wrote is kept').waitFor();
  expect(await console.violations()).toEqual([]);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await enter(page, parent.token);
  await field(page).waitFor({ state: 'detached' });
  expect(await page.getByLabel('Mail', { exact: true }).inputValue()).toBe('half_written');
  expect(page.url()).toBe(consoleUrl(place));
  await page.keyboard.press('Escape');
  // What is read goes on.
  await device.sendMail('lock_check');
  await page.getByText('lock_check').first().waitFor();
  expect(console.faults).toEqual([]);
});

it('somebody else who logs in then sees nothing of the page before', async () => {
  const [parent, other] = [await makeToken(['admin']), await makeToken(['read'], 'Ben')];
  await using console = await ConsolePage.open(browser, server, {
    place: fleet.fleetId,
    token: parent.token,
  });
  const { page } = console;
  await heading(page, 'Now').waitFor();
  await page.evaluate("document.querySelector('.rail').dataset.before = 'yes'");
  await server.admin('DELETE', `/tokens/${parent.token_id}`);
  await enter(page, other.token);
  await page.locator('.who', { hasText: 'Ben' }).waitFor();
  expect(await page.locator('[data-before]').count()).toBe(0);
});

it('a program on another port of the host gets the cookie, and nothing by it', async () => {
  await using console = await ConsolePage.open(browser, server, { place: fleet.fleetId });
  const { page } = console;
  await heading(page, 'Now').waitFor();
  const cookies: string[] = [];
  const thief = createServer(({ headers }, answer) => {
    cookies.push(headers.cookie ?? '');
    answer.setHeader('Content-Type', 'text/html').end('<title>thief</title>');
  });
  await once(thief.listen(0, '127.0.0.1'), 'listening');
  const { port } = thief.address() as AddressInfo;
  const away = await console.newTab();
  await away.goto(`http://127.0.0.1:${port}/`);
  const cookie = cookies[0] ?? '';
  expect(cookie).toMatch(/^fleetpost-\d+=\w{26}$/);
  const answer = await fetch(`${origin()}/admin/v1/self`, { headers: { cookie } });
  expect(answer.status).toBe(401);
  expect(await away.evaluate("localStorage.getItem('fleetpost.session')")).toBeNull();
  const asked = await away.evaluate<string>(
    `fetch('${origin()}/admin/v1/self', { credentials: 'include' }).then(() => 'answered', () => 'refused')`,
  );
  expect(asked).toBe('refused');
  thief.closeAllConnections();
  thief.close();
});
