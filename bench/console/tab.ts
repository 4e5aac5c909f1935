import { existsSync, readFileSync } from 'node:fs';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { pathTo } from '../../src/contract/routes/path.ts';
import { browserFile } from '../../test/console/browser.ts';
import { fleetId } from '../servers/devices.ts';
import type { Fleetpost } from '../servers/fleetpost.ts';

const inPage = readFileSync(new URL('in-page.js', import.meta.url), 'utf8');
const viewport = { width: 1_440, height: 900 };

/** An element that is to be on the page, with the text somewhere in it. */
export interface Drawn {
  selector: string;
  text?: string;
}

/** Cost until something was drawn. */
export interface Drawing {
  milliseconds: number;
  /** CPU time of the tab's main thread, whatever else runs on the machine. */
  cpuMilliseconds: number;
}

/** Cost since the HTML of a page had arrived. */
export interface FirstDrawing extends Drawing {
  /** Time until anything was drawn. */
  paintedMilliseconds: number;
}

/** How to get Chromium; undefined where it is. */
export function missingBrowser(): string | undefined {
  return existsSync(browserFile)
    ? undefined
    : `${browserFile}, in which the console is opened, is not there: apt-get install chromium-headless-shell.`;
}

/** A tab with the console, logged in, with cache and storage of its own. */
export class ConsoleTab implements AsyncDisposable {
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #session: CDPSession;

  private constructor(context: BrowserContext, page: Page, session: CDPSession) {
    this.#context = context;
    this.page = page;
    this.#session = session;
  }

  /** Loads it for the first time, by a fresh code, at a screen of the fleet. */
  static async open(
    browser: Browser,
    server: Fleetpost,
    expected: readonly Drawn[],
    screen = '',
  ): Promise<ConsoleTab> {
    const { code } = await server.admin.request('POST', pathTo('/console-codes', {}), { json: {} });
    const context = await browser.newContext({ viewport });
    await context.addInitScript({ content: `${inPage}bench.expect(${JSON.stringify(expected)});` });
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(`${server.adminUrl}/console/${fleetId}${screen}#code=${code}`);
    return new ConsoleTab(context, page, session);
  }

  /** Measures the drawing that was expected when the tab was opened. @throws Error when it was not drawn in time. */
  async firstDrawing(): Promise<FirstDrawing> {
    const sinceDocument =
      await this.page.evaluate<Omit<FirstDrawing, 'cpuMilliseconds'>>('bench.sinceDocument()');
    return { ...sinceDocument, cpuMilliseconds: await this.#cpuMilliseconds() };
  }

  /** Measures from a press of a key or a button. @throws Error when it was there before, or was not drawn in time. */
  async drawnAfter(press: () => Promise<unknown>, expected: readonly Drawn[]): Promise<Drawing> {
    await this.page.evaluate(`bench.expect(${JSON.stringify(expected)})`);
    const cpuBefore = await this.#cpuMilliseconds();
    await press();
    const milliseconds = await this.page.evaluate<number>('bench.sincePress()');
    if (milliseconds <= 0) throw new Error(`was there before: ${JSON.stringify(expected)}`);
    return { milliseconds, cpuMilliseconds: (await this.#cpuMilliseconds()) - cpuBefore };
  }

  async #cpuMilliseconds(): Promise<number> {
    const { metrics } = await this.#session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
