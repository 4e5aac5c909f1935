import { useEffect, useState } from 'preact/hooks';
import type { DeadLetterDocument, LetterFilter } from '../../../contract/dead-letter.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { Head } from '../../frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { toggled } from '../../parts/selection.tsx';
import { call } from '../../server/client.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { useResource } from '../../server/resource.ts';
import { LetterFilters } from './letter-filters.tsx';
import { LetterSide } from './letter-side.tsx';
import { LetterTable } from './letter-table.tsx';
import { keyOfLetter, type Letters } from './letters.ts';
import { SettleDialog } from './settle.tsx';

const pageLetters = 100;

/** The filter of an address, as the API and the CLI take it. */
function filterOf(parameters: URLSearchParams): { filter: LetterFilter; flags: string[] } {
  const filter: Record<string, string> = {};
  const flags: string[] = [];
  const take = (
    parameter: string,
    key: string,
    flag: string,
    value = parameters.get(parameter) ?? '',
  ): void => {
    if (value === '') return;
    filter[key] = value;
    flags.push(flag, parameters.get(parameter) ?? '');
  };
  take('reason', 'reason', '--reason');
  take('name', 'name', '--name');
  take('device', 'device_id', '--device');
  const spanMs = parseSpan(parameters.get('since') ?? '');
  if (spanMs !== undefined) take('since', 'from', '--since', new Date(serverNow() - spanMs).toISOString());
  return { filter: filter as LetterFilter, flags };
}

/** Mail that failed for good: looked at with its payload, replayed or dropped, one or all that fit. */
export function DeadLettersScreen({ fleetId }: { fleetId: string }) {
  const text = search.value.toString();
  const after = search.value.get('after') ?? '';
  const { filter, flags } = filterOf(search.value);
  const path = `/fleets/${fleetId}/dead-letters`;
  const list = useResource(`${path}?${text}`, (signal) =>
    call<ListDocument<DeadLetterDocument>>('GET', path, {
      query: { ...filter, after, limit: pageLetters },
      signal,
    }),
  );
  const [asked, setAsked] = useState<{ verb: 'replay' | 'drop'; letters: Letters } | undefined>();
  const isEmpty = list.value?.items.length === 0;
  const askAll = (verb: 'replay' | 'drop') => () => setAsked({ verb, letters: { filter } });
  return (
    <>
      <Head
        title="Dead letters"
        read={list}
        tools={
          <>
            <button type="button" class="button" onClick={list.refresh}>
              Refresh
            </button>
            <Act scope="mail" onClick={askAll('drop')} kind="bad" unless={isEmpty ? 'None fits.' : undefined}>
              Drop all that fit
            </Act>
            <Act scope="mail" onClick={askAll('replay')} unless={isEmpty ? 'None fits.' : undefined}>
              Replay all that fit
            </Act>
          </>
        }
      />
      <div class="body">
        <LetterFilters fleetId={fleetId} parameters={search.value} />
        <Loaded resource={list}>
          {(page) => (
            <Found
              key={text}
              fleetId={fleetId}
              page={page}
              onAsk={(verb, letters) => setAsked({ verb, letters })}
            />
          )}
        </Loaded>
      </div>
      <Commands
        command={['dead-letter', 'list', '--fleet', fleetId, ...flags]}
        request={{ path, query: { ...filter, after } }}
      />
      {asked && (
        <SettleDialog
          fleetId={fleetId}
          {...asked}
          onClose={() => setAsked(undefined)}
          onDone={list.refresh}
        />
      )}
    </>
  );
}

interface FoundProps {
  fleetId: string;
  page: ListDocument<DeadLetterDocument>;
  onAsk: (verb: 'replay' | 'drop', letters: Letters) => void;
}

/** A page of letters, with the one that the keys are at beside it. */
function Found({ fleetId, page, onAsk }: FoundProps) {
  const { items, next } = page;
  const [cursor, setCursor] = useState(0);
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const at = Math.min(cursor, items.length - 1);
  const current = items[at];
  const selected = items.filter((letter) => keys.has(keyOfLetter(letter)));
  const meant = selected.length > 0 ? selected : current ? [current] : [];
  const act = (verb: 'replay' | 'drop') => (): void => {
    if (meant.length > 0) onAsk(verb, { listed: meant });
  };
  useKeys({
    j: () => setCursor(Math.min(at + 1, items.length - 1)),
    k: () => setCursor(Math.max(at - 1, 0)),
    x: () => current && setKeys(toggled({ keys: items.map(keyOfLetter), selected: keys }, at)),
    r: act('replay'),
    d: act('drop'),
  });
  useEffect(() => {
    document.querySelector('tr[data-cursor]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  if (items.length === 0 && next === null) return <NoLetter />;
  return (
    <div class="split">
      <div>
        <LetterTable
          fleetId={fleetId}
          items={items}
          keys={keys}
          cursor={at}
          onCursor={setCursor}
          onKeys={setKeys}
        />
        <LetterPages fleetId={fleetId} count={items.length} next={next} />
      </div>
      <aside aria-label="The letter">
        {current && (
          <LetterSide
            key={keyOfLetter(current)}
            fleetId={fleetId}
            letter={current}
            count={meant.length}
            onReplay={act('replay')}
            onDrop={act('drop')}
          />
        )}
      </aside>
    </div>
  );
}

function NoLetter() {
  return (
    <p class="empty">
      {search.value.size === 0
        ? 'No dead letter: every mail that ended was acknowledged or withdrawn.'
        : 'No dead letter fits.'}
    </p>
  );
}

function LetterPages({ fleetId, count, next }: { fleetId: string; count: number; next: string | null }) {
  const target = (after: string): string =>
    href([fleetId, 'dead-letters'], { ...Object.fromEntries(search.value), after });
  return (
    <nav class="inline below" aria-label="Pages">
      {search.value.get('after') !== null && (
        <a class="button" href={target('')}>
          First page
        </a>
      )}
      {next !== null && (
        <a class="button" href={target(next)}>
          Next page
        </a>
      )}
      <span class="hint">{count} on this page</span>
    </nav>
  );
}
