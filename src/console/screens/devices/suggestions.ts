/** What a query may go on with. */
export interface Suggestion {
  /** The whole text of the query with it. */
  text: string;
  /** The word that it ends with. */
  word: string;
  note: string;
}

/** Tags of a fleet with how many devices have them; not all of them if it has more devices than were looked at. */
export interface KnownTags {
  items: readonly { tag: string; devices: number }[];
  is_all: boolean;
}

const suggestionsMax = 8;

/** Words of the query bar with what they find, and the values that they can have. */
const filters: readonly (readonly [word: string, note: string, values?: readonly string[]])[] = [
  ['tag:', 'devices with the tag'],
  ['state:', 'by state', ['connected', 'active', 'offline', 'disabled']],
  ['silent:', 'was active, and fell silent within', ['1h', '1d', '7d']],
  [
    'refused:',
    'refused now, and why',
    ['any', 'wrong_secret', 'schema_mismatch', 'rate_limited', 'disabled', 'other'],
  ],
  ['waiting>', 'the same mail is first for longer than', ['10m', '1h', '1d']],
  ['seen<', 'last seen within', ['10m', '1h', '1d', '7d']],
  ['seen>', 'last seen longer ago than, or never', ['1h', '1d', '7d', '30d']],
  ['name:', 'the name begins with'],
  ['id:', 'the id begins with'],
  ['enabled:', 'may call or not', ['yes', 'no']],
];

/** A word that is typed at the end of a query, with what is before it. */
function lastWord(text: string): [before: string, word: string] {
  const [word = ''] = /(?:[^\s"]|"[^"]*"?)*$/.exec(text) ?? [];
  return [text.slice(0, text.length - word.length), word];
}

/** A tag as a query names it. */
export function tagWord(tag: string): string {
  return /[\s"]/.test(tag) ? `tag:"${tag}"` : `tag:${tag}`;
}

/** What the word that is being typed may become: a filter, or a value of one; none once it is one of them. */
export function suggestionsFor(text: string, tags: KnownTags | undefined): Suggestion[] {
  const [before, word] = lastWord(text);
  const all = /^[a-z]+[:<>]/.test(word) ? valuesFor(word, tags) : word === '' ? [] : filtersFor(word);
  return all
    .filter(([whole]) => whole !== word)
    .slice(0, suggestionsMax)
    .map(([whole, note]) => ({ text: before + whole, word: whole, note }));
}

function filtersFor(word: string): (readonly [string, string])[] {
  return filters.flatMap(([whole, note]) => (whole.startsWith(word) ? [[whole, note] as const] : []));
}

function valuesFor(word: string, tags: KnownTags | undefined): (readonly [string, string])[] {
  if (word.startsWith('tag:')) {
    const typed = word.slice('tag:'.length).replaceAll('"', '').toLowerCase();
    const { items = [], is_all = true } = tags ?? {};
    return items
      .filter(({ tag }) => tag.toLowerCase().startsWith(typed))
      .map(
        ({ tag, devices }) =>
          [tagWord(tag), `${devices.toLocaleString('en')}${is_all ? '' : ' or more'}`] as const,
      );
  }
  const [filter, note, values = []] = filters.find(([one]) => word.startsWith(one)) ?? ['', ''];
  return values.map((value) => [filter + value, note] as const).filter(([whole]) => whole.startsWith(word));
}
