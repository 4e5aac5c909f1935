import { plainText } from '../../core/plain-text.ts';

/** Products of a User-Agent by how they are named there: one that pretends to be others is before those. */
const browsers = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['SamsungBrowser', 'Samsung Internet'],
  ['Firefox', 'Firefox'],
  ['FxiOS', 'Firefox'],
  ['CriOS', 'Chrome'],
  ['HeadlessChrome', 'Headless Chrome'],
  ['Chrome', 'Chrome'],
  ['Version', 'Safari'],
] as const;
const systems = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['CrOS', 'ChromeOS'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['Linux', 'Linux'],
] as const;
/** Maximum length of a name that is none of these. */
const lengthMax = 60;

/** Names a browser as a person would: `Firefox 133, Linux`. Undefined if it says nothing. */
export function browserName(userAgent: string | undefined): string | undefined {
  if (userAgent === undefined || userAgent === '') return undefined;
  const text = userAgent.slice(0, 1_024);
  const system = systems.find(([part]) => text.includes(part))?.[1];
  for (const [product, name] of browsers) {
    const version = new RegExp(`\\b${product}/(\\d{1,5})`).exec(text)?.[1];
    if (version !== undefined) return [`${name} ${version}`, system].filter(Boolean).join(', ');
  }
  return plainText(text).slice(0, lengthMax);
}
