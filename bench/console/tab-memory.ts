import { readFileSync } from 'node:fs';
import type { Browser, CDPSession, Page } from 'playwright-core';

const bytesPerMegabyte = 1e6;

export interface MegabytesOfTab {
  residentMegabytes: number;
  heapMegabytes: number;
}

/** Memory of a tab, as it is, garbage included. */
export class TabMemory {
  readonly #ofBrowser: CDPSession;
  readonly #ofPage: CDPSession;

  private constructor(ofBrowser: CDPSession, ofPage: CDPSession) {
    this.#ofBrowser = ofBrowser;
    this.#ofPage = ofPage;
  }

  static async of(browser: Browser, page: Page): Promise<TabMemory> {
    return new TabMemory(await browser.newBrowserCDPSession(), await page.context().newCDPSession(page));
  }

  async read(): Promise<MegabytesOfTab> {
    const { processInfo } = await this.#ofBrowser.send('SystemInfo.getProcessInfo');
    const renderers = processInfo.filter(({ type }) => type === 'renderer');
    // Beside it Chromium has one in stock, which does nothing.
    const tab = renderers.sort((a, b) => b.cpuTime - a.cpuTime)[0];
    const status = readFileSync(`/proc/${tab?.id}/status`, 'utf8');
    const { usedSize } = await this.#ofPage.send('Runtime.getHeapUsage');
    const kilobytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
    return {
      residentMegabytes: (kilobytes * 1_024) / bytesPerMegabyte,
      heapMegabytes: usedSize / bytesPerMegabyte,
    };
  }
}
