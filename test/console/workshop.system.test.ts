/** Screens and tasks of developers in a browser: actions and schemas. */

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ActionDocument, ActionVersionDocument } from '../../src/contract/action.ts';
import type { RunDocument } from '../../src/contract/action-run.ts';
import { createFleet } from '../harness/devices/device.ts';
import { TestServer } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';
import { ConsolePage, launchBrowser } from './browser.ts';
import { createConsoleActions } from './console-actions.ts';
import { type ConsoleFleet, createConsoleFleet } from './console-fleet.ts';
import { checkScreen } from './screen-check.ts';

let server: TestServer;
let browser: Browser;
let made: ConsoleFleet;
beforeAll(async () => {
  const config = { activityFlushSeconds: 1, actionAttemptsMax: 1 };
  [server, browser] = await Promise.all([TestServer.start(config), launchBrowser()]);
  made = await createConsoleFleet(server);
  await createConsoleActions(server, made.fleet, made);
});
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});

const fleetId = (): string => made.fleet.fleetId;
const open = (place: string, options: { token?: string } = {}): Promise<ConsolePage> =>
  ConsolePage.open(browser, server, { place: `${fleetId()}/${place}`, ...options });
const seen = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();
const button = (page: Page, name: string | RegExp): Locator => page.getByRole('button', { name }).first();

/** Puts a text in the place of what an editor holds. */
async function write(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

const screens: { name: string; place: string; ready: (page: Page) => Promise<unknown> }[] = [
  { name: 'Actions', place: 'actions', ready: (page) => seen(page, 'keep-notes') },
  {
    name: 'Action, written',
    place: 'actions/too-warm',
    ready: async (page) => {
      await seen(page, 'No type errors');
      await button(page, /^Run Ctrl/).click();
      await seen(page, 'It would send 1 mail');
    },
  },
  {
    name: 'Action, when it runs',
    place: 'actions/too-warm',
    ready: async (page) => {
      await button(page, 'When it runs').click();
      await page.getByLabel('JSON Schema of the payloads').waitFor();
    },
  },
  {
    name: 'Action, tests',
    place: 'actions/too-warm',
    ready: async (page) => {
      await button(page, 'Tests 1').click();
      await button(page, 'Run the tests').click();
      await seen(page, 'Test 1 passed');
    },
  },
  {
    name: 'Action, deployment',
    place: 'actions/too-warm',
    ready: async (page) => {
      await write(
        page,
        'Code of too-warm',
        'export default async (record: any, fleet: any) => { fleet.nothing(); };',
      );
      await seen(page, 'kept as a draft');
      await button(page, 'Deploy…').click();
      await seen(page, 'Test 1 failed');
      await button(page, 'Deploy in spite of it').waitFor();
    },
  },
  {
    name: 'Action, runs',
    place: 'actions/keep-notes?tab=runs',
    ready: (page) => seen(page, 'dead: threw'),
  },
  {
    name: 'Action, one run',
    place: 'actions/keep-notes?tab=runs&outcome=dead',
    ready: async (page) => {
      await seen(page, 'dead: threw');
      // The rows are there some moments before the keys are.
      await until(async () => {
        await page.keyboard.press('j');
        return page.getByLabel('Payload', { exact: true }).isVisible();
      });
      await page.getByLabel('Log lines of the run').waitFor();
    },
  },
  { name: 'Action, log', place: 'actions/keep-notes?tab=log', ready: (page) => seen(page, 'k3 3') },
  { name: 'Action, state', place: 'actions/keep-notes?tab=state', ready: (page) => seen(page, 'counter') },
  {
    name: 'Action, versions',
    place: 'actions/too-warm?tab=versions',
    ready: async (page) => {
      await page.getByText('by bootstrap token').first().waitFor();
      await button(page, /Compare/).click();
      await page.locator('.cm-changedLine').first().waitFor();
    },
  },
  {
    name: 'Dead letters of an action',
    place: 'dead-letters?action=keep-notes',
    ready: (page) => page.getByLabel('Payload', { exact: true }).waitFor(),
  },
  { name: 'Schemas', place: 'schemas', ready: (page) => seen(page, 'action too-warm') },
  {
    name: 'Schema',
    place: 'schemas/datapoint/temperature',
    ready: async (page) => {
      await write(page, 'Sample', '{"celsius": "warm"}');
      await seen(page, 'It is refused');
    },
  },
];

it.each(screens)('$name: no fault, and WCAG 2.2 AA, in light and dark, narrow and wide', async (screen) => {
  await using console = await open(screen.place);
  await screen.ready(console.page);
  await checkScreen(console, screen.name);
});

it('an action that turns a fan on above 30 °C is written, tried, deployed and rolled back', async () => {
  const { fleet } = made;
  const hall = await fleet.createDevice({ name: 'Hall' });
  for (const celsius of [24, 33.5]) await hall.request('POST', '/v1/datapoint/temperature', { celsius });
  await using console = await open('actions');
  const { page } = console;
  await seen(page, 'too-warm');
  await page.keyboard.press('n');
  await page.getByLabel('Name').fill('fan-control');
  await page.keyboard.press('Enter');
  // When it runs: chosen from the fleet's schemas.
  await page.getByLabel('Runs for', { exact: true }).selectOption('datapoint:temperature');
  await button(page, 'Remove datapoint:temperature').waitFor();
  await button(page, 'Code').click();
  const begun = [
    "import type { Action } from 'fleetpost/action';",
    'const fan: Action = async (record, fleet) => {',
    '  if (record.payload.',
  ];
  await write(page, 'Code of fan-control', begun.join('\n'));
  // Completed from the schema of the datapoint, then from the types of `fleet`.
  await page.keyboard.type('cel');
  await page.locator('.cm-tooltip-autocomplete li', { hasText: 'celsius' }).waitFor();
  // The editor takes no choice in the first 75 ms, lest a line end that was meant be one.
  await page.waitForTimeout(300);
  await page.keyboard.press('Enter');
  await page.keyboard.insertText(' > 30) await fleet.');
  await page.keyboard.type('se');
  await page.locator('.cm-tooltip-autocomplete li', { hasText: 'sendToTag' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.insertText("nd(record.device, 'set_fan', { on: tru });\n};\nexport default fan;\n");
  // As one types: the mistake is named with its line.
  await seen(page, /Cannot find name 'tru'|No value exists in scope/);
  await button(page, /^3:/).click();
  const source = `${begun.join('\n')}celsius > 30) await fleet.send(record.device, 'set_fan', { on: true });
};
export default fan;
`;
  await write(page, 'Code of fan-control', source);
  await seen(page, 'No type errors');
  // On the newest record of the log, which is the hall's at 33.5 °C.
  await button(page, /^Run Ctrl/).click();
  await seen(page, 'It would send 1 mail');
  await seen(page, '{"on": true}');
  await button(page, 'Keep as a test').click();
  await button(page, 'Deploy…').click();
  await seen(page, 'Test 1 passed');
  await seen(page, 'No type errors.');
  await page.getByRole('dialog').getByRole('button', { name: 'Deploy', exact: true }).click();
  // Also of the first version, whose deployment ends the screen of what is not deployed.
  await seen(
    page,
    'Version 1 is deployed. 1 of 1 tests passed. It runs for each datapoint temperature, from now on.',
  );
  const path = `/fleets/${fleetId()}/actions/fan-control`;
  const deployed = await server.admin<ActionVersionDocument>('GET', `${path}/versions/1`);
  expect(deployed.body).toMatchObject({
    source,
    on: [{ kind: 'datapoint', schema: 'temperature' }],
    tests: [{ mails: [{ to: hall.deviceId, name: 'set_fan', payload: { on: true } }] }],
  });
  // Nothing is left to be kept.
  await page.getByText('kept as a draft').waitFor({ state: 'detached' });
  // A second version that the test does not hold is not deployed unseen.
  await write(page, 'Code of fan-control', source.replace('> 30', '> 40'));
  await button(page, 'Deploy…').click();
  await seen(page, 'Test 1 failed');
  await button(page, 'Deploy in spite of it').click();
  await seen(page, 'Version 2 is deployed. 0 of 1 tests passed.');
  await button(page, 'Versions').click();
  await button(page, /Compare/).click();
  await page.locator('.cm-changedLine').first().waitFor();
  await button(page, 'Roll back to version 1').click();
  await seen(page, 'Rolled back to version 1. It runs for each datapoint temperature, from now on.');
  expect((await server.admin<ActionDocument>('GET', path)).body).toMatchObject({ version: 1 });
  // Both it and too-warm turn the fan on.
  const before = (await hall.mails()).length;
  await hall.request('POST', '/v1/datapoint/temperature', { celsius: 35 });
  await until(async () => (await hall.mails()).length === before + 2);
  expect(console.faults).toEqual([]);
});

it('a fault goes as soon as its line changes, is doubtful when another does, and is told of no text but the one there is', async () => {
  await using console = await open('actions/asleep');
  const { page } = console;
  const source = `export default async (record: any, fleet: any) => {
  nothing(record);
  nowhere(fleet);
};
`;
  await write(page, 'Code of asleep', source);
  const marked = page.locator('.cm-lintRange-error');
  await seen(page, '2 type errors');
  await until(async () => (await marked.count()) === 2);
  // The check is held back: what is seen meanwhile is what is known without it.
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/actions:check', (route) => held.then(() => route.continue()).catch(() => {}));
  await page.locator('.cm-line', { hasText: 'nothing' }).click();
  await page.keyboard.press('End');
  await page.keyboard.type(' ');
  await seen(page, 'Checking types…');
  expect(await marked.count()).toBe(0);
  expect(await page.locator('.cm-lintRange-hint').allInnerTexts()).toEqual(['nowhere']);
  expect(await page.getByRole('button', { name: /^2:/ }).count()).toBe(0);
  release();
  await seen(page, '2 type errors');
  await until(async () => (await marked.count()) === 2);
  expect(console.faults).toEqual([]);
});

it('a run leads to its record, its mails and its log, by an address of its own; the command that shows it is whole', async () => {
  const { fleet, pump } = made;
  const runs = `/fleets/${fleet.fleetId}/actions/too-warm/runs`;
  const newest = async () => (await server.admin<{ items: RunDocument[] }>('GET', runs)).body.items[0];
  const before = await newest();
  await pump.request('POST', '/v1/datapoint/temperature', { celsius: 44.25 });
  await until(async () => (await newest())?.run !== before?.run);
  const run = await newest();
  await using console = await open('actions/too-warm?tab=runs');
  const { page } = console;
  await page.getByRole('link', { name: String(run?.run), exact: true }).click();
  await page.getByLabel('Payload', { exact: true }).getByText('44.25').waitFor();
  await page.reload();
  await page.getByLabel('Payload', { exact: true }).getByText('44.25').waitFor();
  // A long command ends in an ellipsis, and is whole once it had the focus.
  await page.setViewportSize({ width: 700, height: 900 });
  const command = page.getByLabel('The same in a terminal').locator('code').last();
  const isCut = (): Promise<boolean> => command.evaluate((code) => code.scrollWidth > code.clientWidth);
  const style = 'getComputedStyle(document.querySelector(".commands code")).textOverflow';
  expect([await isCut(), await page.evaluate(style)]).toEqual([true, 'ellipsis']);
  await command.click();
  expect(await isCut()).toBe(false);
  expect(await command.innerText()).toContain(`/actions/too-warm/runs/${run?.run}`);
  // It stays so when the pointer presses on what is beside it: the page would move away below the pointer.
  await page.getByRole('link', { name: /set_fan.*waits in the mailbox/ }).click();
  await seen(page, 'Not fetched yet');
  // One that is gone says so.
  await console.go(`${fleet.fleetId}/actions/too-warm?tab=runs&run=999999`);
  await seen(page, 'This action has no such run');
  expect(console.faults).toEqual([]);
});

it('a schema is put, tried with a good and a bad sample, and replaced after a look at what changes', async () => {
  await using console = await open('schemas');
  const { page } = console;
  await seen(page, 'set_speed');
  await page.keyboard.press('n');
  await page.getByLabel('Name', { exact: true }).fill('humidity');
  await page.keyboard.press('Enter');
  await write(
    page,
    'JSON Schema humidity',
    '{"type": "object", "required": ["percent"], "properties": {"percent": {"type": "number", "maximum": 100}}}',
  );
  await write(page, 'Sample', '{"percent": 41.5}');
  await seen(page, 'It matches');
  await write(page, 'Sample', '{"percent": 141.5}');
  await seen(page, 'must be <= 100');
  await seen(page, /\d+ of the 1,000 steps that checking one value may take/);
  await button(page, 'Store…').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Store', exact: true }).click();
  await seen(page, 'It is stored');
  const device = await made.fleet.createDevice();
  expect((await device.request('POST', '/v1/datapoint/humidity', { percent: 141.5 })).status).toBe(400);
  expect((await device.request('POST', '/v1/datapoint/humidity', { percent: 41.5 })).status).toBe(201);
  // The screen reports at once what the server would refuse, with its place.
  await write(page, 'JSON Schema humidity', '{"type": "object", "nullable": true}');
  await seen(page, '/nullable is not a keyword');
  expect(await button(page, 'Replace…').getAttribute('aria-disabled')).toBe('true');
  await write(page, 'JSON Schema humidity', '{"type": "object"}');
  await page.getByRole('button', { name: 'Replace…', disabled: false }).waitFor();
  await button(page, 'Replace…').click();
  await page.locator('.cm-deletedChunk').first().waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Replace', exact: true }).click();
  await seen(page, 'It is stored');
  expect((await device.request('POST', '/v1/datapoint/humidity', { percent: 141.5 })).status).toBe(201);
  expect(console.faults).toEqual([]);
});

it('what is written outlives the screen and a reload, and is asked for before it is discarded', async () => {
  await using console = await open('actions/asleep');
  const { page } = console;
  await write(page, 'Code of asleep', '// half a thought');
  await seen(page, 'kept as a draft');
  await page.getByRole('link', { name: 'Devices' }).click();
  await seen(page, 'LAMP000003');
  await console.go(`${fleetId()}/actions/asleep`);
  await seen(page, '// half a thought');
  await page.reload();
  await seen(page, '// half a thought');
  await button(page, 'Discard').click();
  await button(page, 'Go on writing').click();
  await seen(page, '// half a thought');
  await button(page, 'Discard').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click();
  await seen(page, 'tooWarm');
  expect(console.faults).toEqual([]);
});

it('a failed run is tried again with its own record, digit by digit, and replayed', async () => {
  await using console = await open('dead-letters?action=keep-notes');
  const { page } = console;
  await button(page, /Try it where/).click();
  await page.getByLabel('Payload of the record').getByText('"isHacked"').waitFor();
  await button(page, /^Run Ctrl/).click();
  await seen(page, 'It failed: threw');
  await button(page, 'Line 9').click();
  await console.go(`${fleetId()}/dead-letters?action=keep-notes`);
  await page.getByLabel('Payload', { exact: true }).waitFor();
  await page.keyboard.press('r');
  await seen(page, '1 replayed.');
  expect(console.faults).toEqual([]);
});

it('who may only read sees all, and which scope each change takes', async () => {
  const { body } = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'looker',
    scopes: ['read'],
    fleet_id: fleetId(),
  });
  await using console = await open('actions/too-warm', { token: body.token });
  const { page } = console;
  await seen(page, 'To change it takes the scope admin.');
  expect(await button(page, /^Deploy/).getAttribute('title')).toBe('Your session lacks the scope admin.');
  await console.go(`${fleetId()}/schemas/datapoint/temperature`);
  await seen(page, 'To try it takes the scope provision.');
  expect(await button(page, /^Replace/).getAttribute('title')).toBe(
    'Your session lacks the scope provision.',
  );
  expect(console.faults).toEqual([]);
});

it('a fleet without actions and schemas says what to do first, and one without that action says so', async () => {
  const fleet = await createFleet(server);
  await using console = await ConsolePage.open(browser, server, { place: `${fleet.fleetId}/actions` });
  const { page } = console;
  await seen(page, 'fleetpost action put');
  await checkScreen(console, 'no actions');
  await console.go(`${fleet.fleetId}/actions/nothing`);
  await seen(page, 'There is no action of this name in the fleet.');
  await console.go(`${fleet.fleetId}/schemas/mail/nothing`);
  await seen(page, 'There is no mail schema of this name in the fleet.');
  await checkScreen(console, 'no schema');
});
