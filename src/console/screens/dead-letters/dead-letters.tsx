import { useContext, useState } from 'preact/hooks';
import type { DeadLetterDocument, LetterFilter } from '../../../contract/dead-letter.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { AttentionContext } from '../../frame/attention.ts';
import { Head } from '../../frame/frame.tsx';
import { Pages } from '../../lists/pages.tsx';
import { useRowCursor } from '../../lists/row-cursor.ts';
import { toggled } from '../../lists/selection.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
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
  const path = pathTo('/fleets/{fleet_id}/dead-letters', { fleet_id: fleetId });
  const query = { ...filter, reason: filter.reason && [filter.reason].flat(), after };
  const list = useResource(`${path}?${text}`, (signal) =>
    call('GET', path, { query: { ...query, limit: pageLetters }, signal }),
  );
  const attention = useContext(AttentionContext);
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
      <Commands command={['dead-letter', 'list', '--fleet', fleetId, ...flags]} request={{ path, query }} />
      {asked && (
        <SettleDialog
          fleetId={fleetId}
          {...asked}
          onClose={() => setAsked(undefined)}
          onDone={() => {
            list.refresh();
            attention?.refresh();
          }}
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
  const [at, setCursor] = useRowCursor(items.length);
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const current = items[at];
  const selected = items.filter((letter) => keys.has(keyOfLetter(letter)));
  const meant = selected.length > 0 ? selected : current ? [current] : [];
  const act = (verb: 'replay' | 'drop') => (): void => {
    if (meant.length > 0) onAsk(verb, { listed: meant });
  };
  useKeys({
    x: () => current && setKeys(toggled({ keys: items.map(keyOfLetter), selected: keys }, at)),
    r: act('replay'),
    d: act('drop'),
  });
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
        <Pages next={next}>
          <span class="hint">{items.length} on this page</span>
        </Pages>
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
