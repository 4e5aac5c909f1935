import { ApiError } from '../../core/errors.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import type {
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
  FoundDevice,
  FoundDevices,
} from '../../domain/devices/device-query.ts';
import type { Page } from '../../domain/page.ts';
import type { Shard } from '../../domain/shard.ts';
import type { Turn } from '../request/turn.ts';

/** Devices requested of a shard beyond its even share, since shares are never quite even. */
const spareDevices = 16;
/** Maximum index entries scanned for one page, over all shards; then the page is answered as it is. */
const scannedPerPageMax = 20_000;
/** Maximum entries scanned in one turn of this thread: some milliseconds. */
const scannedPerTurnMax = 250;
/** Entries counted per index to find the most selective one. */
const estimateMax = 2_000;

/** By last sight to ten minutes, the earliest first (who was never seen before all), or the latest. */
export type SeenOrder = 'seen' | '-seen';

/** Start of a page: the index that gives the order, and the position after which it starts. */
interface Cursor {
  by: DeviceIndex;
  after: string;
}

const letters: Readonly<Record<DeviceIndex, string>> = {
  id: 'i',
  tag: 't',
  name: 'n',
  seen: 's',
  waiting: 'w',
  disabled: 'd',
  connected: 'c',
  among: 'r',
};
const plainId = /^[A-Za-z0-9]{10}$/;

function formatCursor({ by, after }: Cursor): string {
  if (by === 'id') return after;
  return `${letters[by]}.${Buffer.from(after, 'latin1').toString('base64url')}`;
}

/** Lists the indexes that contain every device that matches the filter. */
function candidates(filter: DeviceFilter): DeviceIndex[] {
  if (filter.among !== undefined) return ['among'];
  const possible: DeviceIndex[] = [];
  if (filter.connected === true) possible.push('connected');
  if (filter.idPrefix !== undefined && filter.idPrefix !== '') possible.push('id');
  if (filter.namePrefix !== undefined && filter.namePrefix !== '') possible.push('name');
  if (filter.tags?.length) possible.push('tag');
  if (filter.enabled === false) possible.push('disabled');
  if (filter.waitingBeforeMs !== undefined) possible.push('waiting');
  if (filter.seenAfterMs !== undefined || filter.seenBeforeMs !== undefined) possible.push('seen');
  return possible;
}

/** @throws ApiError bad_request for a forged cursor. */
async function begin(
  shards: readonly Shard[],
  filter: DeviceFilter,
  cursor: string,
  turn: Turn,
  order: SeenOrder | undefined,
): Promise<Cursor> {
  const possible: DeviceIndex[] = order === undefined ? candidates(filter) : ['seen'];
  if (order === undefined && plainId.test(cursor)) return { by: 'id', after: cursor };
  const [letter, text] = cursor.split('.', 2);
  if (text === undefined) {
    if (cursor !== '' && order === undefined) return { by: 'id', after: cursor };
    return { by: await mostSelective(shards, filter, possible, turn), after: '' };
  }
  const by = possible.find((index) => letters[index] === letter);
  const after = Buffer.from(text, 'base64url').toString('latin1');
  if (by === undefined || (by === 'connected' && !/^[0-9a-f]{3}[A-Za-z0-9]{10}$/.test(after))) {
    throw new ApiError('bad_request', { msg: '`after` is not a position of this list.' });
  }
  return { by, after };
}

/** Finds the index with the fewest entries. Devices are spread evenly over shards, so one shard is enough. */
async function mostSelective(
  shards: readonly Shard[],
  filter: DeviceFilter,
  possible: readonly DeviceIndex[],
  turn: Turn,
): Promise<DeviceIndex> {
  const [first = 'id'] = possible;
  const [shard] = shards;
  if (possible.length < 2 || shard === undefined) return first;
  let best = first;
  let fewest = Number.POSITIVE_INFINITY;
  for (const by of possible) {
    await turn();
    const count = await shard.devices.countEntries(by, filter, estimateMax);
    if (count < fewest) [best, fewest] = [by, count];
  }
  return best;
}

/**
 * Returns a page of a fleet's devices over all shards, in the order of the most selective index. No shard is asked for a
 * whole page, of which it holds only a part: in rounds, each returns its share, and those certain to be in order are
 * taken. A page scans a bounded number of devices, so it may have fewer than `limit`, or none, and still have a next one.
 */
export async function listDevices(
  shards: readonly Shard[],
  filter: DeviceFilter,
  cursor: string,
  limit: number,
  turn: Turn,
  order?: SeenOrder,
): Promise<Page<DeviceStatus>> {
  const { by, after } = await begin(shards, filter, cursor, turn, order);
  const isReversed = order === '-seen';
  const found: FoundDevice[] = [];
  let from = after;
  let scanned = 0;
  let share = Math.ceil((limit + 1) / shards.length) + spareDevices;
  const shareMax = Math.max(Math.floor(scannedPerTurnMax / shards.length), spareDevices);
  for (;;) {
    await turn();
    share = Math.min(share, shareMax);
    const round = await takeRound(shards, { ...filter, by, isReversed, after: from, scanMax: share });
    found.push(...round.items);
    if (found.length > limit) {
      const items = found.slice(0, limit);
      return { items, next: formatCursor({ by, after: items.at(-1)?.position ?? from }) };
    }
    if (round.reached === undefined) return { items: found, next: null };
    from = round.reached;
    scanned += share * shards.length;
    if (scanned >= scannedPerPageMax) return { items: found, next: formatCursor({ by, after: from }) };
    share *= 2;
  }
}

async function takeRound(shards: readonly Shard[], query: DeviceQuery): Promise<FoundDevices> {
  const parts = await Promise.all(shards.map((shard) => shard.devices.find(query)));
  const inOrder = query.isReversed ? (a: string, b: string) => byText(b, a) : byText;
  // Beyond the end of an unfinished part, its shard may have devices that come first.
  const reached = parts.flatMap(({ reached }) => (reached === undefined ? [] : [reached])).sort(inOrder)[0];
  const items = parts.flatMap(({ items }) => items);
  const sure = items.filter(({ position }) => reached === undefined || inOrder(position, reached) <= 0);
  return { items: sure.sort((a, b) => inOrder(a.position, b.position)), reached };
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
