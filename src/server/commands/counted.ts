/** A number with what it counts, whose plural ends in s: `1 shard`, `2 shards`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
