/** More differences than that are no mistyping. */
const distanceMax = 3;

/** Finds the known name that an unknown one was most likely meant to be. */
export function suggestionFor(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(distanceMax, Math.floor(name.length / 2)) + 1;
  for (const one of known) {
    const distance = editDistance(name.toLowerCase(), one.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [one, distance];
  }
  return best;
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
