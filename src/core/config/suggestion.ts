/** Prefix of all options and variables: it makes no two of them alike. */
const prefix = /^(--|FLEETPOST_)/;

/** More differences than that, or than one in three letters, are no mistyping. */
const distanceMax = 3;

/** Finds the known name that an unknown one was most likely meant to be. */
export function suggestionFor(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(distanceMax, Math.floor(name.replace(prefix, '').length / 3)) + 1;
  for (const one of known) {
    const distance = editDistance(name.toLowerCase(), one.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [one, distance];
  }
  return best;
}

/** Levenshtein distance in which two letters that changed places are one difference. */
function editDistance(a: string, b: string): number {
  let above: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      const isSwapped = j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j];
      const swapped = isSwapped ? (above[j - 1] ?? 0) + 1 : replaced;
      next.push(Math.min(replaced, swapped, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    [above, row] = [row, next];
  }
  return row.at(-1) ?? 0;
}
