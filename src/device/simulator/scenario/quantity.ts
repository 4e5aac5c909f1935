import { OperatorError } from '../../../core/errors.ts';

const millisecondsOf: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Reads a length of time like `250ms`, `90s` or `10m`. @throws OperatorError */
export function parseDuration(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const milliseconds = Number(number) * (millisecondsOf[unit] ?? Number.NaN);
  if (number !== '' && Number.isFinite(milliseconds)) return milliseconds;
  throw new OperatorError(`${text} is no length of time: give one like 250ms, 90s or 10m.`);
}

/** Reads a share like `40%`, from 0 to 1. @throws OperatorError */
export function parseShare(text: string): number {
  const percent = /^\d{1,3}(\.\d{1,6})?%$/.test(text) ? Number(text.slice(0, -1)) : Number.NaN;
  if (percent >= 0 && percent <= 100) return percent / 100;
  throw new OperatorError(`${text} is no share: give one from 0% to 100%.`);
}

/** Formats a length of time in its largest whole unit. */
export function lengthText(milliseconds: number): string {
  for (const unit of ['h', 'm', 's']) {
    const length = millisecondsOf[unit] ?? 1;
    if (milliseconds >= length && milliseconds % length === 0) return `${milliseconds / length}${unit}`;
  }
  return milliseconds >= 1_000 ? `${(milliseconds / 1_000).toFixed(1)}s` : `${Math.round(milliseconds)}ms`;
}
