import type { NamedDevice } from '../servers/named-devices.ts';
import type { ConsoleTab, Drawing, Drawn } from './tab.ts';

/** Steps in the tab, from the first screen on. */
export interface Task {
  /** Its name in the table. */
  workload: string;
  /** How much more often it is done than others; absent: no more. */
  times?: number;
  /** Does it once; measured from the last press of a key or a button. */
  run(tab: ConsoleTab): Promise<Drawing>;
}

/** The first screen with its data: numbers, what needs attention, and the pulse. */
export const nowDrawn: readonly Drawn[] = [
  { selector: '.figures .figure' },
  { selector: 'section[aria-label="Needs attention"] :is(ul.list, p.empty)' },
  { selector: 'section[aria-label="Pulse"] figure' },
];
const stuckRow = 'section[aria-label="Needs attention"] a[href*="/devices/"]';
const rowsDrawn: readonly Drawn[] = [{ selector: '.table tbody tr' }];
const deviceDrawn: readonly Drawn[] = [{ selector: 'dl.facts' }];
const mailboxDrawn: readonly Drawn[] = [
  ...deviceDrawn,
  { selector: 'section[aria-label="Mailbox"] :is(ol.list li, p.empty)' },
];
const stuckDrawn: readonly Drawn[] = [...mailboxDrawn, { selector: '.body > .notice' }];

/** Ids are random: so many characters are the beginning of a few of a million. */
const idPrefixCharacters = 4;
/** All but the last two digits: as many devices as a page has. */
const namePrefixCharacters = -2;

/** Brings the tab to the first screen, and waits until it has all of its data. */
async function toNow({ page }: ConsoleTab): Promise<void> {
  await page.evaluate(`bench.expect(${JSON.stringify(nowDrawn)})`);
  await page.locator('#screens').getByRole('link', { name: 'Now' }).click();
  await page.evaluate('bench.sincePress()');
}

/** Types into the search of the first screen and presses Enter. */
function search(workload: string, textOf: () => string, expected: readonly Drawn[] = rowsDrawn): Task {
  return {
    workload,
    async run(tab) {
      await toNow(tab);
      await tab.page.getByLabel('Find devices').fill(textOf());
      return tab.drawnAfter(() => tab.page.keyboard.press('Enter'), expected);
    },
  };
}

/** Types into what Ctrl-K opens: from the last key on, its pause in typing included. */
function palette(workload: string, textOf: () => string): Task {
  return {
    workload,
    async run(tab) {
      const { page } = tab;
      await toNow(tab);
      await page.keyboard.press('Control+k');
      const text = textOf();
      await page.getByRole('combobox', { name: 'Go to or do' }).fill(text.slice(0, -1));
      const expected = [{ selector: '#palette-entries .entry', text }];
      const drawing = await tab.drawnAfter(() => page.keyboard.press(text.slice(-1)), expected);
      await page.keyboard.press('Escape');
      return drawing;
    },
  };
}

/** The next page of a list, by Enter on its link; from its first page again when it was the last one. */
function nextPage(workload: string, text: string): Task {
  return {
    workload,
    async run(tab) {
      const { page } = tab;
      const link = page.getByRole('link', { name: 'Next page' });
      const isIts = (new URL(page.url()).searchParams.get('q') ?? '') === text;
      if (!isIts || (await link.count()) === 0) {
        await toNow(tab);
        await page.getByLabel('Find devices').fill(text);
        await tab.drawnAfter(() => page.keyboard.press('Enter'), rowsDrawn);
      }
      await page.evaluate(
        `document.querySelectorAll('.table tbody tr').forEach((row) => row.setAttribute('data-old', ''))`,
      );
      await link.focus();
      const expected = [{ selector: '.table tbody tr:not([data-old])' }];
      return tab.drawnAfter(() => page.keyboard.press('Enter'), expected);
    },
  };
}

/** Tasks in a fleet of which one mailbox is stuck. */
export const stuckTasks: readonly Task[] = [
  {
    workload: 'one stuck device, named on Now, a click: why, and its mail',
    async run(tab) {
      await toNow(tab);
      return tab.drawnAfter(() => tab.page.locator(stuckRow).click(), stuckDrawn);
    },
  },
  search('waiting>5s, which one fits', () => 'waiting>5s'),
];

/** Each finds devices that are drawn from all of the fleet. */
export function searchTasks(devices: readonly NamedDevice[], tags: readonly string[]): Task[] {
  const any = <T>(all: readonly T[]): T => {
    const one = all[Math.floor(Math.random() * all.length)];
    if (one === undefined) throw new Error('the fleet has no devices');
    return one;
  };
  const id = (): string => any(devices).deviceId;
  const idPrefix = (): string => id().slice(0, idPrefixCharacters);
  const namePrefix = (): string => any(devices).name.slice(0, namePrefixCharacters);
  return [
    { ...search('an id: the device', id, deviceDrawn), times: 2 },
    { ...search('an id: the device with its mailbox', id, mailboxDrawn), times: 2 },
    search('id:ABCD', () => `id:${idPrefix()}`),
    search('ABCD, which begins no name but an id', idPrefix),
    search('name:unit-01234', () => `name:${namePrefix()}`),
    search('unit-01234', namePrefix),
    palette('Ctrl-K, ABCD', idPrefix),
    palette('Ctrl-K, unit-01234', namePrefix),
    search('tag:hall-123, of a thousandth', () => `tag:${any(tags)}`),
    search('tag:canary, of an eleventh', () => 'tag:canary'),
    ...['state:connected', 'state:active', 'state:offline', 'seen<1h'].map((text) =>
      search(text, () => text),
    ),
    search('waiting>5s, which a hundredth fits', () => 'waiting>5s'),
    search('waiting>5s tag:canary', () => 'waiting>5s tag:canary'),
    nextPage('next page of all', ''),
    nextPage('next page of seen<1h', 'seen<1h'),
  ];
}
