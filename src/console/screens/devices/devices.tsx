import { useMemo, useState } from 'preact/hooks';
import type { DeviceDocument } from '../../../contract/device.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { type Path, pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { Pages } from '../../lists/pages.tsx';
import { useRowCursor } from '../../lists/row-cursor.ts';
import { toggled } from '../../lists/selection.tsx';
import { useKeys } from '../../page/keys.ts';
import { go, href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { type Resource, useResource } from '../../server/resource.ts';
import { Bulk } from './bulk.tsx';
import { asIdPrefix, parseDeviceQuery } from './device-query.ts';
import { DeviceTable } from './device-table.tsx';
import { Export } from './export.tsx';
import { devicesOfIds } from './find-id.ts';
import { Import } from './import.tsx';
import { NewDeviceDrawer } from './new-device.tsx';
import { QueryBar } from './query-bar.tsx';
import { spellingsOf } from './spellings.ts';

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

/** The page of devices that the address asks for, or the way to what its text is the id of. */
function useDevicePage(
  fleetId: string,
  path: Path<'/fleets/{fleet_id}/devices'>,
): Resource<ListDocument<DeviceDocument>> {
  const text = search.value.get('q') ?? '';
  const after = search.value.get('after') ?? '';
  const { filter, problems } = useMemo(() => parseDeviceQuery(text), [text]);
  return useResource(
    problems.length > 0 ? undefined : `${path}?${text}&${after}`,
    async (signal) => {
      const page = await call('GET', path, { query: { ...filter, after, limit: pageDevices }, signal });
      if (after !== '') return page;
      const target = await targetOfId(fleetId, text, page.items.length === 0, signal);
      if (target !== undefined) go(target, { replace: true });
      return page;
    },
    everySeconds,
  );
}

/** The devices of a fleet: found by what indexes answer, and changed together. */
export function DevicesScreen({ fleetId }: { fleetId: string }) {
  const text = search.value.get('q') ?? '';
  const after = search.value.get('after') ?? '';
  const { filter, flags, problems } = useMemo(() => parseDeviceQuery(text), [text]);
  const [asked, setAsked] = useState<'new' | 'import' | undefined>();
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
  const list = useDevicePage(fleetId, path);
  useKeys({ r: list.refresh, n: () => setAsked('new') });
  return (
    <Screen
      title="Devices"
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
          request: { path, query: { ...filter, after } },
        },
      ]}
    >
      <QueryBar fleetId={fleetId} text={text} />
      {problems.map((problem) => (
        <Banner kind="warn" key={problem}>
          <Untrusted text={problem} />
        </Banner>
      ))}
      {problems.length === 0 && (
        <Loaded resource={list}>
          {(page) => (
            <Found key={fleetId + text} fleetId={fleetId} text={text} page={page} onChanged={list.refresh} />
          )}
        </Loaded>
      )}
      {asked === 'new' && <NewDeviceDrawer fleetId={fleetId} onClose={() => setAsked(undefined)} />}
      {asked === 'import' && (
        <Import fleetId={fleetId} onClose={() => setAsked(undefined)} onImported={list.refresh} />
      )}
    </Screen>
  );
}

interface FoundProps {
  fleetId: string;
  text: string;
  page: ListDocument<DeviceDocument>;
  onChanged: () => void;
}

/** One page of the list, and what is selected in it: `j` and `k` go along the rows, `x` selects one, `o` opens it. */
function Found({ fleetId, text, page, onChanged }: FoundProps) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  const { items, next } = page;
  const { filter, flags } = useMemo(() => parseDeviceQuery(text), [text]);
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
          cursor={cursor}
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
