/**
 * How many each owner may keep so that all together have `max` at most and whoever has fewer keeps all: what those
 * leave is shared by the others alike.
 */
export function fairLevel(counts: readonly number[], max: number): number {
  const ascending = counts.toSorted((one, other) => one - other);
  let left = max;
  for (const [index, count] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (count > share) return share;
    left -= count;
  }
  return max;
}
