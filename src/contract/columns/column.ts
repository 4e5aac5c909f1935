/**
 * A column of a list, declared beside its noun for all that show one: the table of a command, whose titles are the names,
 * and the table of the console. A name that is no member of the document has a value of its own.
 */
export type ListColumn<Item> = Shown &
  (
    | { readonly name: keyof Item & string; value?(item: Item): unknown }
    | { readonly name: string; value(item: Item): unknown }
  );

interface Shown {
  /** Title on a page; absent: it is left to commands. */
  readonly label?: string;
  /** Kind of the value, which says how a page shows it; a text by default. */
  readonly kind?: 'text' | 'word' | 'id' | 'time' | 'count' | 'bytes';
  /** Word on a page for no value. */
  readonly none?: string;
  /** Left to pages. */
  readonly isPageOnly?: boolean;
  /** Left away where there is little room. */
  readonly isLesser?: boolean;
}

export type ListColumns<Item> = readonly ListColumn<Item>[];
