import { FilterSelect, FilterText } from '../../lists/filters.tsx';
import { go, href } from '../../page/router.ts';

const kinds = [
  ['', 'all kinds'],
  ['datapoint', 'datapoint'],
  ['message', 'message'],
  ['receipt', 'receipt'],
  ['reply', 'reply'],
  ['refused', 'refused'],
] as const;

/** What is shown of all that comes. */
export interface LiveFilter {
  kind: string;
  schema: string;
  device: string;
  text: string;
  since: string;
}

/** The filter that the address has. */
export function filterOf(parameters: URLSearchParams): LiveFilter {
  const value = (name: string): string => parameters.get(name) ?? '';
  return {
    kind: value('kind'),
    schema: value('schema'),
    device: value('device'),
    text: value('text'),
    since: value('since'),
  };
}

const spans = [
  ['', 'from now on'],
  ['5m', 'since 5 min ago'],
  ['1h', 'since 1 h ago'],
  ['1d', 'since 1 d ago'],
] as const;

/** The fields of the filter, whose state is the address. */
export function LiveFilters({ fleetId, filter }: { fleetId: string; filter: LiveFilter }) {
  const set = (changed: Partial<LiveFilter>): void =>
    go(href([fleetId, 'live'], { ...filter, ...changed }), { replace: true });
  const of = (name: keyof LiveFilter) => ({
    value: filter[name],
    onChange: (value: string): void => set({ [name]: value.trim() }),
  });
  return (
    <div class="filters">
      <FilterSelect label="Kind" options={kinds} {...of('kind')} />
      <FilterText label="Schema" lengthMax={255} {...of('schema')} />
      <FilterText label="Device id" lengthMax={255} isMono {...of('device')} />
      <FilterText label="Text in it" lengthMax={255} {...of('text')} />
      <FilterSelect label="Since" options={spans} {...of('since')} />
    </div>
  );
}
