/** How far the server's clock is ahead of this browser's: all times shown are of the server. */
let aheadMs = 0;

/** Takes the server's clock from the Date header of an answer, which has whole seconds. */
export function adjustClock(date: string | null): void {
  const serverMs = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(serverMs)) return;
  const measuredMs = serverMs + 500 - Date.now();
  if (Math.abs(measuredMs - aheadMs) > 1_500) aheadMs = measuredMs;
}

/** The time at the server. */
export function serverNow(): number {
  return Date.now() + aheadMs;
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A span in its largest unit: `3 d`. */
export function spanText(spanMs: number, round = Math.floor): string {
  const [unit, unitMs] = units.find(([, ms]) => Math.abs(spanMs) >= ms) ?? units[3];
  return `${round(Math.abs(spanMs) / unitMs)} ${unit}`;
}

/** A span that may be milliseconds of one that is quick and days of one that is not. */
export function fineSpanText(spanMs: number): string {
  return spanMs < 10_000 ? `${spanMs.toLocaleString('en')} ms` : spanText(spanMs);
}

/** Milliseconds of a span like `2d` or `90 min`; undefined for another text. */
export function parseSpan(text: string): number | undefined {
  const [, digits, letter] = /^(\d{1,8})\s*(s|m|min|h|d)$/.exec(text.trim()) ?? [];
  if (digits === undefined || letter === undefined) return undefined;
  const unit = units.find(([name]) => name[0] === letter[0]);
  return unit && Number(digits) * unit[1];
}

/** A span as `parseSpan` reads it, in the largest unit that divides it: `10m`. */
export function exactSpanText(seconds: number): string {
  const [unit, unitMs] = units.find(([, ms]) => (seconds * 1_000) % ms === 0) ?? units[3];
  return `${(seconds * 1_000) / unitMs}${unit[0]}`;
}

/** `in 3 h`, `12 s ago`, `now`. What was set to 7 d a moment ago is in 7 d, not in 6. */
export function relativeText(timeMs: number, nowMs: number): string {
  const passedMs = nowMs - timeMs;
  if (Math.abs(passedMs) < 1_000) return 'now';
  return passedMs > 0 ? `${spanText(passedMs)} ago` : `in ${spanText(passedMs, Math.round)}`;
}

/** Made once: a format costs forty times what it takes to use it, and a page has hundreds of times. */
const zoneFormat = new Intl.DateTimeFormat('en', { timeZoneName: 'short' });

/** A time as it is shown on hover: in the time zone of the reader, to the millisecond. */
export function exactText(time: string | number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const zone = zoneFormat.format(date).split(' ').at(-1);
  const two = (part: number): string => String(part).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const hour = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
  return `${day} ${hour}.${String(date.getMilliseconds()).padStart(3, '0')} ${zone}`;
}

/** The hour and minute of a moment; with its day, unless that is today. */
export function clockText(time: string): string {
  const text = exactText(time);
  return text.slice(text.startsWith(exactText(serverNow()).slice(0, 10)) ? 11 : 0, 16);
}

/** A moment to the millisecond; with its month and day, unless that is today. */
export function preciseText(time: string): string {
  const text = exactText(time);
  return text.slice(text.startsWith(exactText(serverNow()).slice(0, 10)) ? 11 : 5, 23);
}

/** The hour, minute and second of a moment, for one of today. */
export function hourText(timeMs: number): string {
  return exactText(timeMs).slice(11, 19);
}
