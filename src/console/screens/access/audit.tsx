import type { ComponentChildren } from 'preact';
import { pathTo } from '../../../contract/routes/path.ts';
import { Head } from '../../frame/frame.tsx';
import { byAge, Pages } from '../../lists/pages.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { call } from '../../server/client.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { useResource } from '../../server/resource.ts';
import { AuditFilters, books } from './audit-filters.tsx';
import { AuditTable } from './audit-table.tsx';

const path = pathTo('/audit', {});
const pageEntries = 100;

/** Reads the filter from the address, as the API and the CLI take it. */
function filterOf(parameters: URLSearchParams) {
  const textOf = (name: string): string | undefined => parameters.get(name) || undefined;
  const fleet = textOf('fleet');
  const book = books.find(([name]) => name === parameters.get('book'))?.[0] || undefined;
  const token = textOf('token');
  const about = textOf('about');
  const since = textOf('since');
  const spanMs = parseSpan(since ?? '');
  const from = spanMs === undefined ? undefined : new Date(serverNow() - spanMs).toISOString();
  const flags = Object.entries({
    '--fleet': fleet,
    '--book': book,
    '--by': token,
    '--about': about,
    '--since': from && since,
  }).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  return { query: { fleet, book, token, about, from }, flags };
}

/** Who changed what, newest first. The address is the filter: every object links here with its own. */
export function AuditScreen({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  const text = search.value.toString();
  const after = search.value.get('after') ?? undefined;
  const { query, flags } = filterOf(search.value);
  const list = useResource(`audit?${text}`, (signal) =>
    call('GET', path, { query: { ...query, after, limit: pageEntries }, signal }),
  );
  useKeys({ r: list.refresh });
  return (
    <>
      <Head
        title="Access"
        read={list}
        beside={tabs}
        tools={
          <button type="button" class="button" onClick={list.refresh} title="Read again (r)">
            Refresh
          </button>
        }
      />
      <div class="body">
        <AuditFilters fleetId={fleetId} parameters={search.value} />
        <Loaded resource={list}>
          {({ items, next }) => (
            <>
              {items.length === 0 ? (
                <p class="empty">
                  {next === null ? 'No entry fits.' : 'No entry fits among the newest; older ones may.'}
                </p>
              ) : (
                <AuditTable fleetId={fleetId} items={items} />
              )}
              <Pages next={next} words={byAge} />
            </>
          )}
        </Loaded>
      </div>
      <Commands command={['audit', 'list', ...flags]} request={{ path, query: { ...query, after } }} />
    </>
  );
}
