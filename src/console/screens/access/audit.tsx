import type { ComponentChildren } from 'preact';
import type { AuditEntryDocument } from '../../../contract/access/audit.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { Head } from '../../frame.tsx';
import { byAge, Pages } from '../../lists/pages.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { callAs } from '../../server/client.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { useResource } from '../../server/resource.ts';
import { AuditFilters } from './audit-filters.tsx';
import { AuditTable } from './audit-table.tsx';

const pageEntries = 100;

/** Reads the filter from the address, as the API and the CLI take it. */
function filterOf(parameters: URLSearchParams): { query: Record<string, string>; flags: string[] } {
  const query: Record<string, string> = {};
  const flags: string[] = [];
  for (const [name, flag] of [
    ['fleet', '--fleet'],
    ['book', '--book'],
    ['token', '--by'],
    ['about', '--about'],
  ] as const) {
    const value = parameters.get(name) ?? '';
    if (value === '') continue;
    query[name] = value;
    flags.push(flag, value);
  }
  const since = parameters.get('since') ?? '';
  const spanMs = parseSpan(since);
  if (spanMs === undefined) return { query, flags };
  query.from = new Date(serverNow() - spanMs).toISOString();
  return { query, flags: [...flags, '--since', since] };
}

/** Who changed what, newest first. The address is the filter: every object links here with its own. */
export function AuditScreen({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  const text = search.value.toString();
  const after = search.value.get('after') ?? undefined;
  const { query, flags } = filterOf(search.value);
  const list = useResource(`audit?${text}`, (signal) =>
    callAs<ListDocument<AuditEntryDocument>>('GET', '/audit', {
      query: { ...query, after, limit: pageEntries },
      signal,
    }),
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
      <Commands
        command={['audit', 'list', ...flags]}
        request={{ path: '/audit', query: { ...query, after } }}
      />
    </>
  );
}
