/** Tasks around what is made, changed and deleted in a browser: devices, fleets, consumers, forwarders. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FleetDocument } from '../../src/contract/fleet.ts';
import { anyObject, TestFleet } from '../harness/devices/device.ts';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import { mainFile, TestServer } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';
import { ConsolePage, launchBrowser } from './browser.ts';
import { checkScreen } from './screen-check.ts';

const config = { activityFlushSeconds: 1, forwardHosts: 'localhost', unauthorizedMax: 2 } as const;
let server: TestServer;
let browser: Browser;
beforeAll(async () => {
  [server, browser] = await Promise.all([TestServer.start(config), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});

/** A fleet with nothing in it, as the form makes it. */
async function makeFleet(name: string): Promise<string> {
  const { body } = await server.admin<FleetDocument>('POST', '/fleets', { name });
  return body.fleet_id;
}

/** A folder with `fleetpost` in its path, as after an installation. */
function shellFolder(): { cwd: string; env: NodeJS.ProcessEnv } {
  const cwd = temporaryFolder();
  const file = join(cwd, 'fleetpost');
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${mainFile}' "$@"\n`);
  chmodSync(file, 0o755);
  const env = { ...process.env, PATH: `${cwd}:${process.env.PATH}`, FLEETPOST_DATA: server.report.data };
  return { cwd, env };
}

/** Runs a command that the page shows, as it stands there. */
async function paste(command: string): Promise<string> {
  return (await promisify(execFile)('bash', ['-c', command], shellFolder())).stdout;
}

/** The commands of a step that is not done yet, in order. */
function commandsOf(page: Page, step: string): Promise<string[]> {
  return page.getByRole('listitem').filter({ hasText: step }).locator('.paste pre').allInnerTexts();
}

async function makeDevice(page: Page, opener: string): Promise<void> {
  await page.getByRole('button', { name: opener }).click();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'I have stored it' }).click();
}

it('a console without a fleet offers to make one, and one is deleted by its name', async () => {
  await using console = await ConsolePage.open(browser, server);
  const { page } = console;
  await page.getByText('No fleet yet').waitFor();
  await checkScreen(console, 'no fleet');
  await page.getByRole('button', { name: 'Make the first fleet' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Meadow');
  await page.getByLabel('Id', { exact: true }).fill('MEADOW01');
  await page.getByRole('button', { name: 'Make the fleet' }).click();
  await page.waitForURL('**/console/MEADOW01');
  await page.getByRole('option', { name: 'Meadow · MEADOW01' }).waitFor({ state: 'attached' });
  await console.go('MEADOW01/fleet');
  await page.getByRole('button', { name: 'New fleet' }).waitFor();
  await page.getByRole('button', { name: 'More to do with fleets' }).click();
  await page.getByRole('button', { name: 'Delete this fleet' }).click();
  const question = page.getByRole('dialog', { name: 'Delete the fleet' });
  await question.getByText('its 0 devices').waitFor();
  const yes = question.getByRole('button', { name: 'Delete the fleet' });
  expect(await yes.getAttribute('aria-disabled')).toBe('true');
  await question.getByLabel('Its name').fill('Meadow');
  await checkScreen(console, 'deletion of a fleet');
  await yes.click();
  await until(async () => (await server.admin('GET', '/fleets/MEADOW01')).status === 404);
  expect(console.faults).toEqual([]);
});

it('the first steps of an empty fleet work as they are printed, one after another', async () => {
  const fleetId = await makeFleet('Orchard');
  await using console = await ConsolePage.open(browser, server, { place: fleetId });
  const { page } = console;
  await makeDevice(page, 'Make the first device');
  const done = (step: string): Promise<void> => page.getByText(`${step} (done)`, { exact: true }).waitFor();
  await page.getByText('It says that it is alive').waitFor();
  await page.getByText('this fleet has no schema temperature').waitFor();
  await checkScreen(console, 'first steps of a device');
  for (const command of await commandsOf(page, 'It says that it is alive')) {
    expect(await paste(command)).toContain('201');
  }
  await done('It says that it is alive');
  const [schema = '', datapoint = ''] = await commandsOf(page, 'It sends a datapoint');
  expect(await paste(schema)).toContain('temperature');
  expect(await paste(datapoint)).toContain('201');
  await done('It sends a datapoint');
  await page.getByRole('button', { name: 'Send it a mail' }).click();
  await page.getByLabel('Mail', { exact: true }).fill('water');
  await page.getByRole('button', { name: /^Send Ctrl/ }).click();
  await page.getByText('Not fetched yet').waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(async () => (await commandsOf(page, 'It gets a mail')).length).toBe(2);
  const [fetched = '', acknowledge = ''] = await commandsOf(page, 'It gets a mail');
  expect(await paste(fetched)).toMatch(/x-mail-name: water/i);
  expect(await paste(acknowledge)).toContain('200');
  await done('It gets a mail, and acknowledges it');
  expect(console.faults).toEqual([]);
});

it("a device's own programs run as they are printed, with the secret that was made in this page", async () => {
  const fleetId = await makeFleet('Cellar');
  await using console = await ConsolePage.open(browser, server, { place: `${fleetId}/devices` });
  const { page } = console;
  await page.getByRole('button', { name: /^New device/ }).click();
  await page.getByLabel('Id', { exact: true }).fill('PUMP000009');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('link', { name: 'Open the device' }).click();
  await page.getByRole('button', { name: 'Store the schema flow' }).click();
  await page.getByText('this fleet has no schema flow').waitFor({ state: 'detached' });
  const text = (): Promise<string> => page.locator('details pre.small').innerText();
  const devicePath = `/fleets/${fleetId}/devices/PUMP000009`;
  const recordsPath = `/fleets/${fleetId}/records:latest?device=PUMP000009&kind=datapoint`;
  let sent = 0;
  for (const [language, file, program, client] of [
    ['Python', 'pump.py', 'python3', 'clients/python/fleetpost.py'],
    ['JavaScript', 'pump.mjs', process.execPath, 'dist/device.mjs'],
  ] as const) {
    await page.getByRole('button', { name: language, exact: true }).click();
    const folder = temporaryFolder();
    writeFileSync(join(folder, file), await text());
    const source = fileURLToPath(new URL(`../../${client}`, import.meta.url));
    copyFileSync(source, join(folder, client.split('/').at(-1) ?? ''));
    await server.admin('POST', `/fleets/${fleetId}/devices/PUMP000009/mail/water`, {});
    const child = spawn(program, [file], { cwd: folder, stdio: 'inherit' });
    try {
      const isDone = async (): Promise<boolean> => {
        const device = await server.admin<{ mailbox_size: number }>('GET', devicePath);
        const records = await server.admin<{ items: unknown[] }>('GET', recordsPath);
        return device.body.mailbox_size === 0 && records.body.items.length > sent;
      };
      await until(isDone, 50_000);
    } finally {
      await end(child);
    }
    const { items } = (await server.admin<{ items: unknown[] }>('GET', recordsPath)).body;
    expect(JSON.stringify(items.at(-1))).toContain('12.5');
    sent = items.length;
  }
  // Another tab does not know the secret, and says how to come to one.
  await page.reload();
  await page.getByText('Twelve lines of Python or JavaScript').click();
  await page.getByText('is not known here').waitFor();
  expect(await text()).toContain('FOS-…');
  expect(console.faults).toEqual([]);
});

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

it('a secret that is shown once is not thrown away by a key', async () => {
  const fleetId = await makeFleet('Safe');
  await using console = await ConsolePage.open(browser, server, { place: `${fleetId}/access/tokens?new=1` });
  const { page } = console;
  await page.getByLabel('Name').fill('dashboard');
  await page.keyboard.press('Enter');
  const secret = page.getByRole('dialog', { name: 'New token' }).getByText(/^FPT-/);
  await secret.waitFor();
  const question = page.getByRole('dialog', { name: 'Close without storing the token?' });
  // What had the focus may be gone, and the key is then the page's.
  const loseFocus = (): Promise<unknown> => page.evaluate('document.activeElement.blur()');
  for (const close of [
    () => page.keyboard.press('Escape'),
    () => page.keyboard.press('Escape'),
    () => loseFocus().then(() => page.keyboard.press('Escape')),
    () => loseFocus().then(() => page.keyboard.press('Escape')),
    () => page.getByRole('button', { name: 'Close', exact: true }).click(),
  ]) {
    await close();
    await question.waitFor();
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'detached' });
    expect(await secret.isVisible()).toBe(true);
  }
  await checkScreen(console, 'a token that was made');
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await secret.waitFor({ state: 'detached' });
  expect(console.faults).toEqual([]);
});

it('a device is renamed, tagged and deleted where it stands, and by name in the palette', async () => {
  const fleetId = await makeFleet('Garden');
  const path = `/fleets/${fleetId}/devices`;
  await server.admin('POST', path, { device_id: 'VALV000001', tags: ['hall, north', 'old'] });
  for (const name of ['open', 'close']) await server.admin('POST', `${path}/VALV000001/mail/${name}`, {});
  await using console = await ConsolePage.open(browser, server, { place: `${fleetId}/devices/VALV000001` });
  const { page } = console;
  const choose = async (text: string): Promise<void> => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Go to or do' }).fill(text);
    await page
      .getByRole('option', { name: new RegExp(text, 'i') })
      .first()
      .waitFor();
    await page.keyboard.press('Enter');
  };
  await page.getByRole('button', { name: 'Edit the name' }).waitFor();
  await choose('rename');
  await page.getByLabel('Name', { exact: true }).fill('Valve of the garden');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Valve of the garden' }).waitFor();
  await page.getByRole('button', { name: 'Edit the tags' }).click();
  await page.getByRole('button', { name: 'Remove old' }).click();
  await page.getByLabel('New tags').fill('garden, water');
  await checkScreen(console, 'tags of a device');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('link', { name: 'water', exact: true }).waitFor();
  const { body } = await server.admin<{ tags: string[] }>('GET', `${path}/VALV000001`);
  expect(body.tags).toEqual(['hall, north', 'garden', 'water']);
  await page.getByRole('button', { name: 'More to do with the device' }).click();
  await page.getByRole('button', { name: 'Disable', exact: true }).click();
  await page.getByText('Is disabled: every call is refused').waitFor();
  await page.getByRole('button', { name: 'More to do with the device' }).click();
  await checkScreen(console, 'menu of a device');
  await page.keyboard.press('Escape');
  await choose('delete');
  const question = page.getByRole('dialog', { name: 'Delete the device' });
  await question.getByText('its mailbox of 2 mails').waitFor();
  const yes = question.getByRole('button', { name: 'Delete the device' });
  expect(await yes.getAttribute('aria-disabled')).toBe('true');
  await checkScreen(console, 'deletion of a device');
  await question.getByLabel('Its id').fill('VALV000001');
  await yes.click();
  await page.waitForURL(`**/console/${fleetId}/devices`);
  await page.getByText('VALV000001 is deleted, with 2 mails.').waitFor();
  expect((await server.admin('GET', `${path}/VALV000001`)).status).toBe(404);
  expect(console.faults).toEqual([]);
});

it('a forwarder is made with what is wrong said as it is written, changed, its secret rotated, and deleted', async () => {
  const fleetId = await makeFleet('Yard');
  await using console = await ConsolePage.open(browser, server, { place: `${fleetId}/consumers` });
  const { page } = console;
  await page.getByText('No forwarder yet').waitFor();
  await page.getByRole('button', { name: 'New forwarder' }).click();
  const make = page.getByRole('button', { name: 'Make the forwarder' });
  await page.getByLabel('Name', { exact: true }).fill('warehouse');
  await page.getByLabel('URL').fill('ftp://localhost');
  await page.getByText('Begins with https:// or http:// and a host').waitFor();
  expect(await make.isDisabled()).toBe(true);
  await page.getByText('Secrets and certificates').click();
  await page.getByText('Batches', { exact: true }).click();
  await checkScreen(console, 'a forwarder that is wrong');
  await page.getByRole('button', { name: 'NATS', exact: true }).click();
  await page.getByLabel('Servers').waitFor();
  await checkScreen(console, 'a forwarder to NATS');
  await page.getByRole('button', { name: 'Webhook', exact: true }).click();
  await page.getByLabel('URL').fill('https://localhost:9/records');
  await page.getByLabel('Headers').fill('Authorization: Bearer hush');
  await make.click();
  await page.getByText(/^whsec_/).waitFor();
  await page.getByText('the server signs with it').waitFor();
  await page.getByText('It takes no connections now').waitFor();
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('link', { name: 'warehouse', exact: true }).click();
  const choose = async (name: string): Promise<void> => {
    await page.getByRole('button', { name: 'More to do with the forwarder' }).click();
    await page.getByRole('button', { name, exact: true }).click();
  };
  await choose('Change');
  await page.getByLabel('Schemas').fill('reading, flow');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('forwards to').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('reading, flow').waitFor();
  await page.getByText('header authorization', { exact: true }).waitFor();
  const facts = page.getByRole('region', { name: 'Facts' });
  await expect.poll(() => facts.textContent()).toMatch(/Signing secretsince (now|\d+ s ago)/);
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.locator('.body').getByText('The test event did not arrive, after').waitFor();
  expect(await page.locator('.head .notice').count()).toBe(0);
  expect(await page.getByText('..', { exact: false }).count()).toBe(0);
  await choose('New signing secret');
  await page.getByRole('button', { name: 'Make a new secret' }).click();
  await page.getByText(/^whsec_/).waitFor();
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await facts.getByText('the old one signs too, and ends').waitFor();
  await choose('Delete');
  await page.getByRole('button', { name: 'Delete the forwarder' }).click();
  await page.getByText('No forwarder yet').waitFor();
  expect(console.faults).toEqual([]);
});

it('a consumer is made, changed and deleted, and what it is behind is said in words', async () => {
  const fleetId = await makeFleet('Mill');
  const fleet = new TestFleet(server, fleetId);
  await fleet.putSchema('datapoint', 'reading', anyObject);
  const device = await fleet.createDevice();
  const reading = { celsius: 1 };
  expect((await device.request('POST', '/v1/datapoint/reading', reading)).status).toBe(201);
  await using console = await ConsolePage.open(browser, server, { place: `${fleetId}/consumers` });
  const { page } = console;
  await page.getByRole('button', { name: 'New consumer' }).click();
  await page.getByLabel('Name', { exact: true }).fill('billing');
  await page.getByLabel('Lease of a batch').fill('0');
  await page.getByText('A whole number from 1 to 3,600').waitFor();
  await page.getByLabel('Lease of a batch').fill('60');
  await page.getByLabel('Begins').selectOption('latest');
  await page.getByLabel('datapoint').check();
  await checkScreen(console, 'new consumer');
  await page.getByRole('button', { name: 'Make the consumer' }).click();
  await page.getByText(`fleetpost consumer fetch billing --fleet ${fleetId}`).waitFor();
  await page.keyboard.press('Escape');
  expect((await device.request('POST', '/v1/datapoint/reading', reading)).status).toBe(201);
  await page.keyboard.press('r');
  // It begins where it was told to, whatever was written in the form afterwards.
  await page.getByText(/^(\d+ s, )?1 record$/).waitFor();
  await page.getByRole('link', { name: 'billing' }).click();
  const choose = async (name: string): Promise<void> => {
    await page.getByRole('button', { name: 'More to do with the consumer' }).click();
    await page.getByRole('button', { name, exact: true }).click();
  };
  await choose('Change');
  await page.getByLabel('Lease of a batch').fill('90');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('90 s', { exact: true }).waitFor();
  await choose('Delete');
  await page.getByRole('button', { name: 'Delete the consumer' }).click();
  await page.getByText('No consumer yet').waitFor();
  expect(console.faults).toEqual([]);
});

it('records and the audit log are written to files', async () => {
  const fleetId = await makeFleet('Archive');
  const fleet = new TestFleet(server, fleetId);
  await fleet.putSchema('datapoint', 'reading', anyObject);
  await fleet.putSchema('message', 'note', anyObject);
  const device = await fleet.createDevice();
  for (let count = 0; count < 3; count += 1) await device.request('POST', '/v1/datapoint/reading', { count });
  await device.request('POST', '/v1/msg/note', { text: 'not this one' });
  await using console = await ConsolePage.open(browser, server, { place: `${fleetId}/live?kind=datapoint` });
  const { page } = console;
  // Nobody is here to choose a file: as in a browser that has no such dialog.
  await page.evaluate('delete globalThis.showSaveFilePicker');
  const download = async (title: string): Promise<string[]> => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('dialog').getByRole('button', { name: title }).click(),
    ]);
    const lines = readFileSync(await file.path(), 'utf8')
      .split('\n')
      .filter(Boolean);
    await page.getByText(new RegExp(`^${lines.length} (records|entries), .*, saved$`)).waitFor();
    return lines;
  };
  await page.getByRole('button', { name: 'Export what fits' }).click();
  await page.getByLabel('Stored in').selectOption('between');
  await checkScreen(console, 'export of records');
  await page.getByLabel('Stored in').selectOption('1h');
  const records = await download('Export records');
  expect(records.map((line) => JSON.parse(line).payload)).toEqual([{ count: 0 }, { count: 1 }, { count: 2 }]);
  await console.go(`${fleetId}/access/audit?fleet=${fleetId}`);
  await page.evaluate('delete globalThis.showSaveFilePicker');
  await page.getByRole('button', { name: 'Export what fits' }).click();
  const entries = await download('Export the audit log');
  expect(entries.map((line) => JSON.parse(line).route)).toContain('/admin/v1/fleets/:fleet_id/devices');
  expect(console.faults).toEqual([]);
});

it('a lockout is lifted where it is shown', async () => {
  const fleetId = await makeFleet('Gate');
  const device = await new TestFleet(server, fleetId).createDevice();
  const wrong = { 'X-Device-Secret': `FOS-${'0'.repeat(32)}` };
  for (let tries = 0; tries < 3; tries += 1) await device.request('POST', '/v1/heartbeat', undefined, wrong);
  expect((await device.heartbeat()).status).toBe(429);
  await using console = await ConsolePage.open(browser, server, {
    place: `${fleetId}/devices/${device.deviceId}`,
  });
  const { page } = console;
  await page.getByText(/Is locked out for/).waitFor();
  await page.getByRole('button', { name: /^Lift/ }).click();
  await page.getByText('Locked out', { exact: true }).waitFor({ state: 'detached' });
  expect((await device.heartbeat()).status).toBe(201);
  expect(console.faults).toEqual([]);
});

it('the whole state of an action is cleared at once', async () => {
  const fleetId = await makeFleet('Counters');
  const action = `/fleets/${fleetId}/actions/count`;
  const source = 'export default async () => {};';
  const on = [{ kind: 'message', schema: 'note' }];
  await server.admin('PUT', `/fleets/${fleetId}/schemas/message/note`, {});
  const deployed = await server.admin('PUT', action, { language: 'javascript', source, on });
  expect(deployed).toMatchObject({ status: 201 });
  for (const key of ['a', 'b']) await server.admin('PUT', `${action}/state/value?key=${key}`, { value: 1 });
  await using console = await ConsolePage.open(browser, server, {
    place: `${fleetId}/actions/count?tab=state`,
  });
  const { page } = console;
  await page.getByRole('button', { name: 'Clear the whole state' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Clear the whole state' }).click();
  await page.getByText('The state is empty.', { exact: false }).first().waitFor();
  const { body } = await server.admin<{ items: unknown[] }>('GET', `${action}/state`);
  expect(body.items).toEqual([]);
  expect(console.faults).toEqual([]);
});
