import { useMemo, useState } from 'preact/hooks';
import type { DeviceDocument, DeviceFilterDocument } from '../../../contract/device.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { type Path, pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { lazyScreen } from '../../frame/lazy-screen.tsx';
import { Pages } from '../../lists/pages.tsx';
import { useRowCursor } from '../../lists/row-cursor.ts';
import { toggled } from '../../lists/selection.tsx';
import { useKeys } from '../../page/keys.ts';
import { go, href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { CallError } from '../../server/call-error.ts';
import { call } from '../../server/client.ts';
import { type Resource, useDocument, useResource } from '../../server/resource.ts';
import { asIdPrefix, type ParsedQuery, parseDeviceQuery } from './device-query.ts';
import { DeviceTable } from './device-table.tsx';
import { Export } from './export.tsx';
import { devicesOfIds } from './find-id.ts';
import { QueryBar } from './query-bar.tsx';
import { QuickFilters } from './quick-filters.tsx';
import { spellingsOf } from './spellings.ts';

// Loaded when they are first needed: the entry is what everybody loads.
const Bulk = lazyScreen(async () => (await import('./bulk.tsx')).Bulk);
const Import = lazyScreen(async () => (await import('./import.tsx')).Import);
const NewDeviceDrawer = lazyScreen(async () => (await import('./new-device.tsx')).NewDeviceDrawer);

const pageDevices = 100;
const everySeconds = 15;

/** Address that the text leads to if it is an id, or, if no device fits it as it stands, the beginning of ids. */
async function targetOfId(
  fleetId: string,
  text: string,
  isEmpty: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const word = asIdPrefix(text);
  if (word === undefined || !(isEmpty || word.length === 10)) return undefined;
  const [device] = await devicesOfIds(fleetId, spellingsOf(word), 1, signal);
  if (device === undefined) return undefined;
  const { device_id } = device;
  if (device_id.length === word.length) return href([fleetId, 'devices', device_id]);
  return href([fleetId, 'devices'], { q: `id:${device_id.slice(0, word.length)}` });
}

/** Queries of the last lists, as they were read: the spans in them are times, which the pages of one list must share. */
const queries = new Map<string, ParsedQuery>();
const queriesMax = 20;

function queryOf(text: string, after: string): ParsedQuery {
  const known = after === '' ? undefined : queries.get(text);
  const query = known ?? parseDeviceQuery(text);
  queries.delete(text);
  queries.set(text, query);
  const [oldest] = queries.keys();
  if (queries.size > queriesMax && oldest !== undefined) queries.delete(oldest);
  return query;
}

/** What the address asks for. */
function useDeviceQuery() {
  const text = search.value.get('q') ?? '';
  const after = search.value.get('after') ?? '';
  const order = (['seen', '-seen'] as const).find((one) => one === search.value.get('order'));
  const query = useMemo(() => queryOf(text, after), [text, after]);
  return { ...query, text, after, order };
}
type DeviceQuery = ReturnType<typeof useDeviceQuery>;

/** The page of devices that the address asks for, or the way to what its text is the id of. */
function useDevicePage(
  fleetId: string,
  path: Path<'/fleets/{fleet_id}/devices'>,
  { text, after, order, filter, problems }: DeviceQuery,
): Resource<ListDocument<DeviceDocument>> {
  return useResource(
    problems.length > 0 ? undefined : `${path}?${text}&${order}&${after}`,
    async (signal) => {
      const query = { ...filter, ...(order && { order }), after, limit: pageDevices };
      try {
        const page = await call('GET', path, { query, signal });
        if (after !== '') return page;
        const target = await targetOfId(fleetId, text, page.items.length === 0, signal);
        if (target !== undefined) go(target, { replace: true });
        return page;
      } catch (error) {
        // A position of a list of other times, from before the page was loaded: it begins anew.
        if (error instanceof CallError && error.status === 400 && after !== '')
          go(href([fleetId, 'devices'], { q: text, order }), { replace: true });
        throw error;
      }
    },
    everySeconds,
  );
}

/** How many devices the list has: counted once for each query, up to as many as are counted in one call. */
function Total({ fleetId, query: { text, filter } }: { fleetId: string; query: DeviceQuery }) {
  const path = pathTo('/fleets/{fleet_id}/devices:count', { fleet_id: fleetId });
  const { value } = useDocument(path, undefined, filter);
  if (value === undefined) return null;
  const word = text !== '' ? 'fit' : value.devices === 1 ? 'device' : 'devices';
  return (
    <span class="read">
      {value.devices.toLocaleString('en')}
      {value.next !== null && '+'} {word}
    </span>
  );
}

/** The devices of a fleet: found by what indexes answer, and changed together. */
export function DevicesScreen({ fleetId }: { fleetId: string }) {
  const query = useDeviceQuery();
  const { text, after, order, filter, flags, problems } = query;
  const [asked, setAsked] = useState<'new' | 'import' | undefined>();
  // Devices that were made here since the list was counted.
  const [made, setMade] = useState(0);
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
  const list = useDevicePage(fleetId, path, query);
  const onMade = (): void => {
    setMade((before) => before + 1);
    list.refresh();
  };
  useKeys({ r: list.refresh, n: () => setAsked('new') });
  return (
    <Screen
      title="Devices"
      beside={problems.length === 0 && <Total key={`${text} ${made}`} fleetId={fleetId} query={query} />}
      read={list}
      tools={
        <>
          <Act onClick={list.refresh} title="Read again (r)">
            Refresh
          </Act>
          <Act scope="provision" onClick={() => setAsked('import')}>
            Import
          </Act>
          <Export fleetId={fleetId} filter={filter} />
          <Act scope="provision" kind="main" onClick={() => setAsked('new')} title="n">
            New device
          </Act>
        </>
      }
      commands={[
        {
          command: ['device', 'list', '--fleet', fleetId, ...flags],
          request: { path, query: { ...filter, ...(order && { order }), after } },
        },
      ]}
    >
      <QueryBar fleetId={fleetId} text={text} />
      <QuickFilters fleetId={fleetId} text={text} />
      {problems.map((problem) => (
        <Banner kind="warn" key={problem}>
          <Untrusted text={problem} />
        </Banner>
      ))}
      {problems.length === 0 && (
        <Loaded resource={list}>
          {(page) => (
            <Found
              key={fleetId + text}
              fleetId={fleetId}
              query={query}
              page={page}
              onChanged={list.refresh}
            />
          )}
        </Loaded>
      )}
      {asked === 'new' && (
        <NewDeviceDrawer fleetId={fleetId} onMade={onMade} onClose={() => setAsked(undefined)} />
      )}
      {asked === 'import' && (
        <Import fleetId={fleetId} onClose={() => setAsked(undefined)} onImported={onMade} />
      )}
    </Screen>
  );
}

interface FoundProps {
  fleetId: string;
  query: DeviceQuery;
  page: ListDocument<DeviceDocument>;
  onChanged: () => void;
}

/** One page of the list, and what is selected in it: `j` and `k` go along the rows, `x` selects one, `o` opens it. */
function Found({ fleetId, query, page, onChanged }: FoundProps) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  const { text, order, filter, flags } = query;
  const { next } = page;
  const items = useMemo(() => inOrder(page.items, order), [page, order]);
  const clear = (): void => {
    setIds(new Set());
    setAll(false);
  };
  const [cursor] = useRowCursor(items.length, -1);
  const device = items[cursor];
  useKeys({
    x: () => {
      if (device === undefined) return;
      setAll(false);
      setIds(toggled({ keys: items.map(({ device_id }) => device_id), selected: ids }, cursor));
    },
    o: () => device && go(href([fleetId, 'devices', device.device_id])),
  });
  const refusals = useRefusals(fleetId, filter.refused);
  const isPaged = search.value.get('after') !== null;
  const isEmpty = items.length === 0 && next === null;
  const selection = isAll ? { filter, flags, text } : { ids: [...ids] };
  return (
    <>
      {isEmpty ? (
        <p class="empty">{emptySentence(text, isPaged)}</p>
      ) : (
        <DeviceTable
          fleetId={fleetId}
          items={items}
          ids={isAll ? new Set(items.map(({ device_id }) => device_id)) : ids}
          refusals={refusals}
          isOfRefused={filter.refused !== undefined}
          cursor={cursor}
          sorts={{ last_seen: sortOf(fleetId, text, order) }}
          onIds={(changed) => {
            setAll(false);
            setIds(changed);
          }}
        />
      )}
      <Pages next={next}>{(isPaged || next !== null) && <PageSize count={items.length} next={next} />}</Pages>
      {(ids.size > 0 || isAll) && (
        <Bulk
          fleetId={fleetId}
          selection={selection}
          onAll={isAll ? undefined : () => setAll(true)}
          onClear={clear}
          onDone={onChanged}
        />
      )}
    </>
  );
}

/** What devices are refused now; of a list of refused ones, for its reason alone. */
function useRefusals(fleetId: string, refused: DeviceFilterDocument['refused'] = 'any') {
  const path = pathTo('/fleets/{fleet_id}/refusals', { fleet_id: fleetId });
  const { value } = useDocument(path, everySeconds, {
    limit: 1_000,
    ...(refused !== 'any' && { reason: refused }),
  });
  return value?.items ?? [];
}

/** A page by last sight: the server knows it to ten minutes in its index, and exactly of each device. */
function inOrder(items: readonly DeviceDocument[], order: DeviceQuery['order']): readonly DeviceDocument[] {
  if (order === undefined) return items;
  const seen = ({ last_seen }: DeviceDocument): string => last_seen ?? '';
  const sorted = items.toSorted((a, b) => (seen(a) < seen(b) ? -1 : seen(a) > seen(b) ? 1 : 0));
  return order === 'seen' ? sorted : sorted.reverse();
}

/** How the list is sorted by last sight, and what it is sorted by next: the latest first, the earliest, not at all. */
function sortOf(fleetId: string, text: string, order: DeviceQuery['order']) {
  const next = { seen: undefined, '-seen': 'seen', none: '-seen' }[order ?? 'none'];
  const direction = order && (order === 'seen' ? ('ascending' as const) : ('descending' as const));
  return { direction, href: href([fleetId, 'devices'], { q: text, order: next }) };
}

function emptySentence(text: string, isPaged: boolean): string {
  if (isPaged) return 'No further devices fit.';
  return text === ''
    ? 'This fleet has no device yet. Make one, import a file, or let devices register themselves with a claim token.'
    : 'No device fits. Names are found by their beginning, tags as they are written, an id by its first characters.';
}

function PageSize({ count, next }: { count: number; next: string | null }) {
  return (
    <span class="hint">
      {count} on this page{next !== null && count < pageDevices && '; the search goes on with the next one'}
    </span>
  );
}
