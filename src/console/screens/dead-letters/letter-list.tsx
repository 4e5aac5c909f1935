import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ListColumns } from '../../../contract/columns/column.ts';
import type { ListDocument } from '../../../contract/document.ts';
import type { Scope } from '../../../core/scope.ts';
import { LongWork } from '../../forms/long-work.tsx';
import { tellDone } from '../../forms/toast.tsx';
import { Screen } from '../../frame/frame.tsx';
import { Menu } from '../../frame/menu.tsx';
import { type HeldList, useHeldList } from '../../lists/held-list.ts';
import { Pages } from '../../lists/pages.tsx';
import { useRowCursor } from '../../lists/row-cursor.ts';
import { toggled } from '../../lists/selection.tsx';
import { ListTable, type ListTableProps } from '../../lists/table.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import type { CommandsProps } from '../../parts/commands.tsx';
import type { Resource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';

export type Verb = 'replay' | 'drop';

/** The verb on a button. */
export const verbs: Readonly<Record<Verb, string>> = { replay: 'Replay', drop: 'Drop' };

/** Letters that something is to be done with: some of a page, or undefined for all that the list has. */
export type Chosen<Letter> = readonly Letter[] | undefined;

/** How many letters came to what end so far, by the word for it. */
export type LetterCounts = Readonly<Record<string, number>>;

/** How many letters a list has; `isAll` is false where there are more than were counted. */
export interface LetterTotal {
  letters: number;
  isAll: boolean;
}

/** `997`, or `10,000+`. */
export function totalText({ letters, isAll }: LetterTotal): string {
  return `${letters.toLocaleString('en')}${isAll ? '' : '+'}`;
}

export interface LetterSideProps<Letter> {
  fleetId: string;
  letter: Letter;
  /** The buttons that act on it, or on those that are selected. */
  tools: ComponentChildren;
}

export interface LetterListProps<Letter, C extends ListColumns<Letter>> {
  title: string;
  beside?: ComponentChildren;
  commands: readonly CommandsProps[];
  /** Shown above the list. */
  filters?: ComponentChildren;
  resource: Resource<ListDocument<Letter>>;
  /** Scope that it takes to replay and drop. */
  scope: Scope;
  /** Order of its pages, where that is not by when a letter died. */
  pageOrder?: string;
  /** How many there are, where that is counted. */
  total?: LetterTotal | undefined;
  empty: ComponentChildren;
  keyOf(letter: Letter): string;
  /** When it died, as text that sorts like the time. */
  timeOf(letter: Letter): string;
  /** Names it in a sentence. */
  labelOf(letter: Letter): string;
  /** Set if several can be selected; else one is acted on at a time. */
  isSelectable?: boolean;
  /** Says of the buttons what they act on, where that is one. */
  aimOf(verb: Verb, letter: Letter): string;
  table(
    cursor: number,
    onCursor: (cursor: number) => void,
  ): Pick<ListTableProps<Letter, C>, 'columns' | 'first' | 'cells'>;
  /** Shows what is known of one, with the buttons that act on it. */
  side(letter: Letter, tools: ComponentChildren): ComponentChildren;
  /** Says which are meant, and what will become of them. */
  question(verb: Verb, letters: Chosen<Letter>, count: string | undefined): string;
  settle(
    verb: Verb,
    letters: Chosen<Letter>,
    signal: AbortSignal,
    onProgress: (counts: LetterCounts) => void,
  ): Promise<void>;
  /** Called when their number has changed, and it is shown: what says it may push the list. */
  onChanged?: () => void;
}

/** Letters that are asked about, with their number when the question came. */
interface Asked<Letter> {
  verb: Verb;
  letters: Chosen<Letter>;
  total: LetterTotal | undefined;
}

/** A list of what failed for good: looked at one by one, replayed or dropped, some or all. */
export function LetterList<Letter, const C extends ListColumns<Letter>>(props: LetterListProps<Letter, C>) {
  const { title, beside, commands, filters, resource, total, empty, onChanged } = props;
  const [asked, setAsked] = useState<Asked<Letter> | undefined>();
  const held = useHeldList(search.value.toString(), resource.value, props);
  const { fresh } = held;
  const isMore = fresh === resource.value?.items.length && resource.value.next !== null;
  const askAll = (verb: Verb): void => setAsked({ verb, letters: undefined, total });
  const { error, isBusy, submit } = useSubmit();
  const show = (): void => {
    held.show();
    onChanged?.();
  };
  const refresh = (): void => {
    held.showNext();
    resource.refresh();
    onChanged?.();
  };
  // A replay of one destroys nothing, and is not asked about.
  const replayOne = (letter: Letter): void =>
    void submit(async () => {
      let counts: LetterCounts = {};
      await props.settle('replay', [letter], new AbortController().signal, (now) => {
        counts = now;
      });
      tellDone(`${props.labelOf(letter)}: ${countsText(counts, true)}`);
      held.settle([letter]);
      resource.refresh();
      onChanged?.();
    });
  const onAsk = (verb: Verb, letters: readonly Letter[]): void => {
    const [first] = letters;
    if (verb === 'replay' && letters.length === 1 && first !== undefined) {
      if (!isBusy) replayOne(first);
    } else setAsked({ verb, letters, total: { letters: letters.length, isAll: true } });
  };
  return (
    <Screen
      title={title}
      read={resource}
      beside={
        <>
          {beside}
          {fresh > 0 && (
            <Act onClick={show} title="Shows them; until then no row moves">
              {totalText({ letters: fresh, isAll: !isMore })} new
            </Act>
          )}
        </>
      }
      commands={commands}
      tools={<AllTools list={props} onRefresh={refresh} onAsk={askAll} />}
    >
      {filters}
      {error && <ErrorBanner error={error} />}
      <Loaded resource={resource}>
        {({ next }) =>
          held.items.length === 0 && next === null ? (
            <p class="empty">{empty}</p>
          ) : (
            <Page key={search.value.toString()} list={props} held={held} next={next} onAsk={onAsk} />
          )
        }
      </Loaded>
      {asked && <Settlement {...asked} list={props} onClose={() => setAsked(undefined)} onDone={refresh} />}
    </Screen>
  );
}

interface AllToolsProps<Letter, C extends ListColumns<Letter>> {
  list: LetterListProps<Letter, C>;
  onRefresh: () => void;
  onAsk: (verb: Verb) => void;
}

/** The buttons for all letters of the list; the one that destroys is not beside the others. */
function AllTools<Letter, C extends ListColumns<Letter>>({
  list,
  onRefresh,
  onAsk,
}: AllToolsProps<Letter, C>) {
  const { resource, scope, total } = list;
  const unless = resource.value?.items.length === 0 ? 'There is none.' : undefined;
  const all = total === undefined ? 'all' : `all ${totalText(total)}`;
  return (
    <>
      <Act onClick={onRefresh}>Refresh</Act>
      <Act scope={scope} onClick={() => onAsk('replay')} unless={unless}>
        Replay {all}
      </Act>
      <Menu label="More to do with all">
        <Act scope={scope} kind="bad" onClick={() => onAsk('drop')} unless={unless}>
          Drop {all}
        </Act>
      </Menu>
    </>
  );
}

/** A row cursor that stays at its letter when others come before it. */
function useLetterCursor(keys: readonly string[]): ReturnType<typeof useRowCursor> {
  const [at, put] = useRowCursor(keys.length);
  const before = useRef<string | undefined>(undefined);
  // Before it is drawn: no key may act on the letter that has come to its place.
  useLayoutEffect(() => {
    const now = before.current === undefined ? -1 : keys.indexOf(before.current);
    if (now !== -1 && now !== at) put(now);
  }, [keys.join(' ')]);
  useLayoutEffect(() => {
    before.current = keys[at];
  }, [at, keys[at]]);
  return [at, put];
}

interface PageProps<Letter, C extends ListColumns<Letter>> {
  list: LetterListProps<Letter, C>;
  held: HeldList<Letter>;
  next: string | null;
  onAsk: (verb: Verb, letters: readonly Letter[]) => void;
}

/** A page of letters, with the one that the keys are at beside it. */
function Page<Letter, C extends ListColumns<Letter>>({ list, held, next, onAsk }: PageProps<Letter, C>) {
  const { keyOf, labelOf, aimOf, isSelectable = false, scope, pageOrder } = list;
  const { items } = held;
  const [at, setCursor] = useLetterCursor(items.map(keyOf));
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const current = items[at];
  const selection = { keys: items.map(keyOf), selected: keys, onSelected: setKeys };
  const selected = items.filter((letter) => keys.has(keyOf(letter)));
  const meant = selected.length > 0 ? selected : current ? [current] : [];
  const act = (verb: Verb) => (): void => {
    if (meant.length > 0) onAsk(verb, meant);
  };
  useKeys({
    x: () => isSelectable && current && setKeys(toggled(selection, at)),
    r: act('replay'),
    d: act('drop'),
  });
  const [one] = meant;
  const words = (verb: Verb): string =>
    meant.length > 1 ? `${verbs[verb]} ${meant.length}` : one === undefined ? verbs[verb] : aimOf(verb, one);
  const tools = (
    <>
      <Act scope={scope} kind="bad" onClick={act('drop')}>
        {words('drop')} <kbd>d</kbd>
      </Act>
      <Act scope={scope} kind="main" onClick={act('replay')}>
        {words('replay')} <kbd>r</kbd>
      </Act>
    </>
  );
  return (
    <div class="split">
      <div>
        <ListTable
          {...list.table(at, setCursor)}
          items={items}
          keyOf={keyOf}
          cursor={at}
          opens
          {...(isSelectable && { selection: { ...selection, labelOf } })}
        />
        <Pages next={next}>
          <span class="hint">
            {items.length} on this page
            {pageOrder !== undefined && (next !== null || search.value.has('after')) && `, ${pageOrder}`}
          </span>
        </Pages>
      </div>
      <aside key={current && keyOf(current)} aria-label="The letter">
        {current && list.side(current, tools)}
      </aside>
    </div>
  );
}

interface SettlementProps<Letter, C extends ListColumns<Letter>> extends Asked<Letter> {
  list: LetterListProps<Letter, C>;
  onClose: () => void;
  onDone: () => void;
}

function Settlement<Letter, C extends ListColumns<Letter>>(props: SettlementProps<Letter, C>) {
  const { list, verb, letters, total, onClose, onDone } = props;
  const count = total && totalText(total);
  const title = verbs[verb];
  return (
    <LongWork<LetterCounts>
      title={title}
      kind={verb === 'replay' ? 'main' : 'bad'}
      verb={
        count === undefined ? `${title} all` : `${title} ${count} ${count === '1' ? 'letter' : 'letters'}`
      }
      // A replay destroys nothing.
      count={verb === 'drop' ? total?.letters : undefined}
      work={(signal, onProgress) => list.settle(verb, letters, signal, onProgress)}
      shown={(counts, isDone) => (
        <p role="status">
          {countsText(counts, isDone)}
          {isDone && sinceText(counts, total)}
        </p>
      )}
      onClose={onClose}
      onDone={onDone}
    >
      <p>{list.question(verb, letters, count)}</p>
    </LongWork>
  );
}

function countsText(counts: LetterCounts, isDone: boolean): string {
  const parts = Object.entries(counts)
    .sort()
    .map(([result, count]) => `${count.toLocaleString('en')} ${result.replaceAll('_', ' ')}`);
  if (parts.length === 0 && isDone) return 'None was left.';
  return `${parts.join(', ')}${isDone ? '.' : ' so far'}`;
}

/** Says how many there were when it was asked, if it was done with others: letters go and come meanwhile. */
function sinceText(counts: LetterCounts, total: LetterTotal | undefined): string {
  const done = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (total === undefined || !total.isAll || total.letters === done) return '';
  return ` There ${total.letters === 1 ? 'was one' : `were ${totalText(total)}`} when you were asked.`;
}
