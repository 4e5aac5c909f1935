import { useEffect, useMemo, useState } from 'preact/hooks';
import type { DeviceDocument } from '../../../contract/device.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { Head } from '../../frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { go, href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { toggled } from '../../parts/selection.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';
import { Bulk } from './bulk.tsx';
import { parseDeviceQuery } from './device-query.ts';
import { DeviceTable } from './device-table.tsx';
import { Export } from './export.tsx';
import { Import } from './import.tsx';
import { NewDeviceDrawer } from './new-device.tsx';
import { QueryBar } from './query-bar.tsx';

const pageDevices = 100;

/** The devices of a fleet: found by what indexes answer, and changed together. */
export function DevicesScreen({ fleetId }: { fleetId: string }) {
  const text = search.value.get('q') ?? '';
  const after = search.value.get('after') ?? '';
  const { filter, flags, problems } = useMemo(() => parseDeviceQuery(text), [text]);
  const [asked, setAsked] = useState<'new' | 'import' | undefined>();
  const path = `/fleets/${fleetId}/devices`;
  const list = useResource(problems.length > 0 ? undefined : `${path}?${text}&${after}`, (signal) =>
    call<ListDocument<DeviceDocument>>('GET', path, {
      query: { ...filter, after, limit: pageDevices },
      signal,
    }),
  );
  useKeys({ r: list.refresh, n: () => setAsked('new') });
  return (
    <>
      <Head
        title="Devices"
        read={list}
        tools={
          <>
            <button type="button" class="button" onClick={list.refresh} title="Read again (r)">
              Refresh
            </button>
            <Act scope="provision" onClick={() => setAsked('import')}>
              Import
            </Act>
            <Export fleetId={fleetId} filter={filter} />
            <Act scope="provision" kind="main" onClick={() => setAsked('new')} title="n">
              New device
            </Act>
          </>
        }
      />
      <div class="body">
        <QueryBar fleetId={fleetId} text={text} />
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
                text={text}
                page={page}
                onChanged={list.refresh}
              />
            )}
          </Loaded>
        )}
      </div>
      <Commands
        command={['device', 'list', '--fleet', fleetId, ...flags]}
        request={{ path, query: { ...filter, after } }}
      />
      {asked === 'new' && <NewDeviceDrawer fleetId={fleetId} onClose={() => setAsked(undefined)} />}
      {asked === 'import' && (
        <Import fleetId={fleetId} onClose={() => setAsked(undefined)} onImported={list.refresh} />
      )}
    </>
  );
}

interface FoundProps {
  fleetId: string;
  text: string;
  page: ListDocument<DeviceDocument>;
  onChanged: () => void;
}

/** One page of the list, and what is selected in it. */
function Found({ fleetId, text, page, onChanged }: FoundProps) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  const [cursor, setCursor] = useState(-1);
  const { items, next } = page;
  const { filter } = useMemo(() => parseDeviceQuery(text), [text]);
  const clear = (): void => {
    setIds(new Set());
    setAll(false);
  };
  useMoves(fleetId, items, cursor, setCursor, () => {
    setAll(false);
    setIds(toggled({ keys: items.map(({ device_id }) => device_id), selected: ids }, cursor));
  });
  const isPaged = search.value.get('after') !== null;
  const isEmpty = items.length === 0 && next === null;
  const selection = isAll
    ? { filter, count: next === null && !isPaged ? items.length : undefined }
    : { ids: [...ids] };
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
      <Pages fleetId={fleetId} text={text} count={items.length} next={next} isPaged={isPaged} />
      {(ids.size > 0 || isAll) && (
        <Bulk
          fleetId={fleetId}
          selection={selection}
          queryText={text}
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

/** `j` and `k` go along the rows, `x` selects one, Enter opens it. */
function useMoves(
  fleetId: string,
  items: readonly DeviceDocument[],
  cursor: number,
  setCursor: (cursor: number) => void,
  onToggle: () => void,
): void {
  const move = (by: number): void => setCursor(Math.min(Math.max(cursor + by, 0), items.length - 1));
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => items[cursor] && onToggle(),
    o: () => {
      const device = items[cursor];
      if (device !== undefined) go(href([fleetId, 'devices', device.device_id]));
    },
  });
  useEffect(() => {
    document.querySelector('tr[data-cursor]')?.scrollIntoView({ block: 'nearest' });
  }, [cursor]);
}

interface PagesProps {
  fleetId: string;
  text: string;
  count: number;
  next: string | null;
  isPaged: boolean;
}

function Pages({ fleetId, text, count, next, isPaged }: PagesProps) {
  if (next === null && !isPaged) return null;
  return (
    <nav class="inline" aria-label="Pages">
      {isPaged && (
        <a class="button" href={href([fleetId, 'devices'], { q: text })}>
          First page
        </a>
      )}
      {next !== null && (
        <a class="button" href={href([fleetId, 'devices'], { q: text, after: next })}>
          Next page
        </a>
      )}
      <span class="hint">
        {count} on this page{next !== null && count < pageDevices && '; the search goes on with the next one'}
      </span>
    </nav>
  );
}
