/**
 * The bucket of a histogram within which that share of what was counted lies, the first one being 0; undefined if nothing
 * was counted.
 */
export function quantileBucket(counts: readonly number[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  let passed = 0;
  return counts.findIndex((count) => {
    passed += count;
    return passed >= total * share;
  });
}
