import { expect } from 'vitest';
import type { ConsolePage } from './browser.ts';

/** Each size and each colour once; with `SCREENS=all` each with each. */
const looks = [
  [1_440, 900, 'light'],
  [360, 740, 'dark'],
  ...(process.env.SCREENS === 'all'
    ? ([
        [1_440, 900, 'dark'],
        [360, 740, 'light'],
      ] as const)
    : []),
] as const;

/** Holds a drawn screen to what holds for all, in each size and colour. */
export async function checkScreen(console: ConsolePage, name: string): Promise<void> {
  const { page } = console;
  for (const [width, height, colorScheme] of looks) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const where = `${name}, ${width} px, ${colorScheme}`;
    const excess = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(excess, `${where}: wider than the window`).toBeLessThanOrEqual(0);
    expect(await console.violations(), where).toEqual([]);
  }
  expect(await page.evaluate('globalThis.isHacked'), name).toBeUndefined();
  expect(console.faults, name).toEqual([]);
}
