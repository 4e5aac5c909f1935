import type { ComponentChildren } from 'preact';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { addressFilter, FilterSelect, FilterText, spans } from '../../lists/filters.tsx';
import { byAge, Pages } from '../../lists/pages.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { useResource } from '../../server/resource.ts';
import { AuditTable } from './audit-table.tsx';
import { ExportAudit } from './export-audit.tsx';

const path = pathTo('/audit', {});
const pageEntries = 100;

/** Reads the filter from the address, as the API and the CLI take it. */
function filterOf(parameters: URLSearchParams) {
  const textOf = (name: string): string | undefined => parameters.get(name) || undefined;
  const fleet = textOf('fleet');
  const chosen = bookOf(parameters);
  const book = chosen === 'all' ? undefined : chosen;
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

/**
 * The book that is read. Of the whole server or a fleet it is what was changed, which mail that programs send would bury;
 * of one object or token all that there is.
 */
function bookOf(parameters: URLSearchParams): (typeof books)[number][0] {
  const isOfOne = Boolean(parameters.get('about') || parameters.get('token'));
  const chosen = books.find(([name]) => name === parameters.get('book'))?.[0];
  return chosen ?? (isOfOne ? 'all' : 'change');
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
    <Screen
      title="Access"
      read={list}
      beside={tabs}
      tools={
        <>
          <ExportAudit query={query} flags={flags} />
          <Act onClick={list.refresh} title="Read again (r)">
            Refresh
          </Act>
        </>
      }
      commands={[{ command: ['audit', 'list', ...flags], request: { path, query: { ...query, after } } }]}
    >
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
    </Screen>
  );
}

const books = [
  ['change', 'changes, and logins'],
  ['traffic', 'mail and claims'],
  ['refused', 'refused requests'],
  ['all', 'all kinds of entries'],
] as const;
const auditSpans = [...spans, ['30d', 'of the last 30 days']] as const;

/** Chooses the entries that are listed: the address is the state. */
export function AuditFilters({ fleetId, parameters }: { fleetId: string; parameters: URLSearchParams }) {
  const of = (name: string) => addressFilter([fleetId, 'access', 'audit'], parameters, name);
  return (
    <div class="filters">
      <FilterSelect
        label="Fleet"
        options={[
          ['', 'the whole server'],
          [fleetId, `this fleet, ${fleetId}`],
        ]}
        {...of('fleet')}
      />
      <FilterSelect label="Book" options={books} {...of('book')} value={bookOf(parameters)} />
      <FilterSelect label="Since" options={auditSpans} {...of('since')} />
      <FilterText label="About: id or name" lengthMax={256} {...of('about')} />
      <FilterText label="By: id of a token" lengthMax={36} {...of('token')} />
    </div>
  );
}
