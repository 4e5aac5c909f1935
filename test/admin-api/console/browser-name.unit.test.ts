import { expect, it } from 'vitest';
import { browserName } from '../../../src/admin-api/console/browser-name.ts';

const mozilla = 'Mozilla/5.0';
it.each([
  [`${mozilla} (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0`, 'Firefox 133, Linux'],
  [
    `${mozilla} (Windows NT 10.0) AppleWebKit/537.36 Chrome/141.0.0.0 Safari/537.36 Edg/141.0`,
    'Edge 141, Windows',
  ],
  [
    `${mozilla} (Linux; Android 15) AppleWebKit/537.36 Chrome/141.0 Mobile Safari/537.36`,
    'Chrome 141, Android',
  ],
  [`${mozilla} (Macintosh; Intel Mac OS X 10_15) AppleWebKit Version/18.1 Safari/605.1`, 'Safari 18, macOS'],
  [`${mozilla} (iPhone; CPU iPhone OS 18_1 like Mac OS X) CriOS/141.0 Mobile Safari`, 'Chrome 141, iPhone'],
  ['curl/8.5.0', 'curl/8.5.0'],
  [`\u202E${'x'.repeat(5_000)}`, `\u{fffd}${'x'.repeat(59)}`],
])('%s is named as a person would', (userAgent, name) => {
  expect(browserName(userAgent)).toBe(name);
});

it('a client that says nothing has no name', () => {
  expect([browserName(undefined), browserName('')]).toEqual([undefined, undefined]);
});
