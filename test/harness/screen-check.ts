import { expect } from 'vitest';
import type { ConsolePage } from './browser.ts';

const sizes = [
  [1_440, 900],
  [360, 740],
] as const;
const schemes = ['light', 'dark'] as const;

/** Holds a drawn screen to what holds for all, in each size and colour. */
export async function checkScreen(console: ConsolePage, name: string): Promise<void> {
  const { page } = console;
  for (const [width, height] of sizes) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const where = `${name}, ${width} px, ${colorScheme}`;
      const excess = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(excess, `${where}: wider than the window`).toBeLessThanOrEqual(0);
      expect(await console.violations(), where).toEqual([]);
    }
  }
  expect(await page.evaluate('globalThis.isHacked'), name).toBeUndefined();
  expect(console.faults, name).toEqual([]);
}
