const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** A size in its unit, with three digits at most before the point: `12.4 MiB`. */
export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  const amount = bytes / 1024 ** power;
  return `${amount.toLocaleString('en', { maximumFractionDigits: amount < 10 && power > 0 ? 1 : 0 })} ${units[power]}`;
}
