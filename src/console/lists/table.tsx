import type { ComponentChildren, TargetedMouseEvent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ListColumn, ListColumns } from '../../contract/columns/column.ts';
import { bytesText } from '../parts/bytes.ts';
import { Moment } from '../parts/moment.tsx';
import { Untrusted } from '../parts/untrusted.tsx';
import { type SelectionProps, SelectPage, SelectRow, useToggle } from './selection.tsx';

export interface ListTableProps<Item, C extends ListColumns<Item>> {
  columns: C;
  items: readonly Item[];
  keyOf(item: Item): string | number;
  /** Columns that the list can be sorted by: how it is now, and the address of the next way. */
  sorts?: {
    [Name in C[number]['name']]?: { direction: 'ascending' | 'descending' | undefined; href: string };
  };
  /** Cells that are more than their value: a link, a mark, a warning. */
  cells?: { [Name in C[number]['name']]?: (item: Item, at: number) => ComponentChildren };
  /** Column by which a row is recognised, unless it is the first anyway. */
  first?: C[number]['name'];
  /** The buttons of a row. */
  acts?: (item: Item) => ComponentChildren;
  /** Shows below a row what belongs to it. */
  more?: (item: Item) => ComponentChildren;
  /** Row that the keys are at. */
  cursor?: number;
  isSelected?: (item: Item) => boolean;
  /** Boxes that select rows, with the name of each for those who do not see it. */
  selection?: SelectionProps & { labelOf(item: Item): string };
  /** True if a click on a row is one on its link or button `data-opens`. */
  opens?: boolean;
  /** Class of a table that looks different in a narrow window. */
  class?: string;
}

/** More than a screen shows: they are drawn first, the others behind them in the next frame. */
const firstRows = 40;

const noSelection: SelectionProps = { keys: [], selected: new Set(), onSelected: () => {} };

/** A list as a table. */
export function ListTable<Item, const C extends ListColumns<Item>>(props: ListTableProps<Item, C>) {
  const { items, keyOf, acts, selection } = props;
  const sorts: Readonly<Record<string, Sort | undefined>> = props.sorts ?? {};
  const columns = columnsOf(props);
  const toggle = useToggle(selection ?? noSelection);
  const [rows, setRows] = useState(firstRows);
  useEffect(() => setRows(Number.POSITIVE_INFINITY), []);
  return (
    <div class="table">
      <table class={props.class}>
        <thead>
          <tr>
            {selection && <SelectPage {...selection} />}
            {columns.map((column) => (
              <Head key={column.name} column={column} sort={sorts[column.name]} />
            ))}
            {acts && (
              <th>
                <span class="visually-hidden">What can be done</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.slice(0, rows).map((item, at) => (
            <Row key={keyOf(item)} {...{ table: props, columns, item, at, toggle }} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Sort {
  direction: 'ascending' | 'descending' | undefined;
  href: string;
}

/** The head of a column; if the list can be sorted by it, a way to do so. */
function Head<Item>({ column, sort }: { column: ListColumn<Item>; sort: Sort | undefined }) {
  const { label } = column;
  if (sort === undefined) return <th class={classOf(column)}>{label}</th>;
  const { direction, href } = sort;
  const arrow = { ascending: ' ↑', descending: ' ↓' };
  return (
    <th class={classOf(column)} aria-sort={direction ?? 'none'}>
      <a href={href} title={`Sort by ${label?.toLowerCase()}`}>
        {label}
        <span aria-hidden="true">{direction ? arrow[direction] : ' ↕'}</span>
      </a>
    </th>
  );
}

function columnsOf<Item, C extends ListColumns<Item>>({
  columns,
  first,
}: ListTableProps<Item, C>): ListColumns<Item> {
  const shown = columns.filter(({ label }) => label !== undefined);
  return first === undefined
    ? shown
    : [...shown.filter(({ name }) => name === first), ...shown.filter(({ name }) => name !== first)];
}

/** The name of a row that is shown beside the list once it is pressed. */
export function RowButton(props: { isCurrent: boolean; onClick: () => void; children: ComponentChildren }) {
  const { isCurrent, onClick, children } = props;
  return (
    <button
      type="button"
      class="cell"
      aria-current={isCurrent ? 'true' : undefined}
      data-opens
      onClick={onClick}
    >
      {children}
    </button>
  );
}

interface RowProps<Item, C extends ListColumns<Item>> {
  table: ListTableProps<Item, C>;
  /** The columns in their order on a page. */
  columns: ListColumns<Item>;
  item: Item;
  at: number;
  toggle: (at: number, withShift: boolean) => void;
}

function Row<Item, C extends ListColumns<Item>>({ table, columns, item, at, toggle }: RowProps<Item, C>) {
  const { keyOf, cells = {}, acts, more, cursor, isSelected, selection, opens = false } = table;
  const isMarked = selection?.selected.has(String(keyOf(item))) || isSelected?.(item);
  const further = more?.(item);
  const has = { opens, 'is-selected': isMarked, 'has-more': Boolean(further) };
  const shown: Readonly<Record<string, ((item: Item, at: number) => ComponentChildren) | undefined>> = cells;
  return (
    <>
      <tr
        class={Object.entries(has)
          .flatMap(([name, is]) => (is ? name : []))
          .join(' ')}
        data-cursor={at === cursor ? '' : undefined}
        onClick={opens ? openRow : undefined}
      >
        {selection && (
          <SelectRow
            label={selection.labelOf(item)}
            isSelected={isMarked === true}
            onToggle={(withShift) => toggle(at, withShift)}
          />
        )}
        {columns.map((column) => (
          <td key={column.name} class={classOf(column)}>
            {shown[column.name]?.(item, at) || <Value column={column} item={item} />}
          </td>
        ))}
        {acts && <td class="acts">{acts(item)}</td>}
      </tr>
      {further && (
        <tr class="more">
          <td colSpan={columns.length + 1}>{further}</td>
        </tr>
      )}
    </>
  );
}

const classes = { text: 'cut', word: '', id: '', time: 'number', count: 'number', bytes: 'number' } as const;

function classOf<Item>({ kind = 'text', isLesser = false }: ListColumn<Item>): string {
  return `${classes[kind]} ${isLesser ? 'less' : ''}`;
}

/** A value as its kind is shown. */
function Value<Item>({ column, item }: { column: ListColumn<Item>; item: Item }) {
  const { name, kind = 'text', none = '–', value = (one: Item) => one[name as keyof Item] } = column;
  const found: unknown = value(item);
  if (found === null || found === '' || (Array.isArray(found) && found.length === 0))
    return <span class="soft">{none}</span>;
  if (kind === 'time')
    return (
      <span class="soft">
        <Moment time={String(found)} />
      </span>
    );
  if (kind === 'count' || kind === 'bytes')
    return (
      <span class={found === 0 ? 'faint' : 'soft'}>
        {kind === 'bytes' ? bytesText(Number(found)) : Number(found).toLocaleString('en')}
      </span>
    );
  return (
    <span class={kind === 'id' ? 'soft mono' : 'soft'}>
      <Untrusted text={Array.isArray(found) ? found.join(', ') : String(found)} lengthMax={120} />
    </span>
  );
}

/**
 * A click beside the box, the links and the buttons of a row is one on what opens it, a link in a tab of its own with the
 * keys for that. Keys and screen readers have the link or button itself.
 */
function openRow(event: TargetedMouseEvent<HTMLTableRowElement>): void {
  const { target, currentTarget, ctrlKey, metaKey, shiftKey } = event;
  if (shiftKey || (target instanceof Element && target.closest('a, button, .check') !== null)) return;
  // Marking a text to copy it is not meant as a click on the row.
  if (getSelection()?.type === 'Range') return;
  const click = new MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey });
  currentTarget.querySelector('[data-opens]')?.dispatchEvent(click);
}
