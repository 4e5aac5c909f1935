import type { Noise } from './noise.ts';
import { type Maker, refused, type SchemaObject, type SchemaRoot } from './schema-root.ts';

const letters = 'abcdefghijklmnopqrstuvwxyz';
/** Characters beyond the least length. */
const extraMax = 12;
const yearMs = 31_536_000_000;
const firstYear = 2_020;

function digits(noise: Noise, length: number, base = 16): string {
  return Array.from({ length }, () => Math.floor(noise.next() * base).toString(base)).join('');
}

function moment(noise: Noise): string {
  return new Date(Date.UTC(firstYear, 0) + Math.floor(noise.next() * 5 * yearMs)).toISOString();
}

const ofFormat: Readonly<Record<string, (noise: Noise) => string>> = {
  'date-time': moment,
  date: (noise) => moment(noise).slice(0, 10),
  time: (noise) => moment(noise).slice(11),
  email: (noise) => `${digits(noise, 8)}@example.com`,
  hostname: (noise) => `h${digits(noise, 6)}.example.com`,
  uri: (noise) => `https://example.com/${digits(noise, 8)}`,
  uuid: (noise) =>
    `${digits(noise, 8)}-${digits(noise, 4)}-4${digits(noise, 3)}-8${digits(noise, 3)}-${digits(noise, 12)}`,
  ipv4: (noise) => `192.0.2.${1 + Math.floor(noise.next() * 254)}`,
  ipv6: (noise) => `2001:db8::${digits(noise, 4)}`,
};

/** Makes strings of a format, or letters of a length. @throws OperatorError for a format that is not known. */
export function stringMaker(root: SchemaRoot, schema: SchemaObject, path: string): Maker {
  const { format, minLength, maxLength } = schema;
  if (typeof format === 'string') {
    const make = ofFormat[format];
    if (make === undefined) throw refused(root, path, `has the format "${format}"`);
    const isBound = minLength !== undefined || maxLength !== undefined;
    if (isBound) throw refused(root, path, 'has a format and a length');
    return make;
  }
  const least = Number(minLength ?? 1);
  const most = Math.min(Number(maxLength ?? Number.POSITIVE_INFINITY), least + extraMax);
  if (most < least) throw refused(root, path, 'leaves no length for its text');
  return (noise) => {
    const length = least + Math.floor(noise.next() * (most - least + 1));
    return Array.from({ length }, () => letters[Math.floor(noise.next() * letters.length)]).join('');
  };
}
