import { readFileSync } from 'node:fs';
import type axe from 'axe-core';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import type { TestServer } from '../harness/server/server.ts';

/** The small one: a page takes half a second of CPU to read the other. */
const axeSource = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** Debian's Chromium without a window and what goes with one: half its CPU. */
export const browserFile = '/usr/bin/chromium-headless-shell';

/** Nothing may leave this machine: no updates, no look-ups of the browser's own. */
export const launchOptions = {
  executablePath: browserFile,
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
};

export function launchBrowser(): Promise<Browser> {
  return chromium.launch(launchOptions);
}

/** A browser like a new one, which waits as long as all that waits here. */
export async function newContext(browser: Browser, options?: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(60_000);
  return context;
}

export interface ConsoleOptions {
  /** Path below /console/, or of a fleet's screen. */
  place?: string;
  /** Token that the session belongs to; absent: the bootstrap token. */
  token?: string;
}

/** The console in a browser of its own, logged in as an operator is. `await using` closes it. */
export class ConsolePage implements AsyncDisposable {
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #origin: string;
  /** Faults that no page of ours may have: errors, violations of its policy, requests to others. */
  readonly faults: string[] = [];

  private constructor(context: BrowserContext, page: Page, origin: string) {
    this.#context = context;
    this.page = page;
    this.#origin = origin;
    page.on('pageerror', (error) => this.faults.push(`error: ${error.message}`));
    page.on('console', (message) => {
      const text = message.text();
      if (/Content Security Policy|TrustedHTML|Trusted Type/i.test(text)) this.faults.push(text);
    });
    page.on('request', (request) => {
      const { protocol, origin: target } = new URL(request.url());
      if (protocol.startsWith('http') && target !== origin) this.faults.push(`request to ${target}`);
    });
  }

  static async open(
    browser: Browser,
    server: TestServer,
    options: ConsoleOptions = {},
  ): Promise<ConsolePage> {
    const { place = '', token = server.token } = options;
    const origin = server.report.admin_url;
    const answer = await fetch(`${origin}/admin/v1/console-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{}',
    });
    const { code } = (await answer.json()) as { code: string };
    const context = await newContext(browser, { viewport: { width: 1_440, height: 900 } });
    // Tests read the commands of a screen; they begin folded.
    await context.addInitScript("localStorage.setItem('fleetpost.foot', 'open')");
    const console = new ConsolePage(context, await context.newPage(), origin);
    await console.page.goto(`${origin}/console/${place}#code=${code}`);
    // The code is traded by then: a page that is left before has no session.
    await console.page.getByText('Opening the console').waitFor({ state: 'detached' });
    return console;
  }

  /** Opens another tab of the same browser. */
  newTab(): Promise<Page> {
    return this.#context.newPage();
  }

  /** Goes to another screen as a typed address does. */
  async go(place: string): Promise<void> {
    await this.page.goto(`${this.#origin}/console/${place}`);
  }

  /** Violations of WCAG 2.2 AA as the page is drawn now. */
  async violations(): Promise<string[]> {
    if (!(await this.page.evaluate("'axe' in globalThis"))) await this.page.evaluate(axeSource);
    return this.page.evaluate(async () => {
      const { axe: found } = globalThis as unknown as { axe: typeof axe };
      const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
      const { violations } = await found.run({ runOnly: { type: 'tag', values: tags } });
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary ?? ''}`),
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
