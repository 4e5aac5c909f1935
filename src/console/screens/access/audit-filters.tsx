import { addressFilter, FilterSelect, FilterText } from '../../lists/filters.tsx';

export const books = [
  ['', 'all books'],
  ['change', 'changes'],
  ['traffic', 'mail and claims'],
  ['refused', 'refused requests'],
] as const;
const spans = [
  ['', 'of all times'],
  ['1h', 'of the last hour'],
  ['1d', 'of the last day'],
  ['7d', 'of the last 7 days'],
  ['30d', 'of the last 30 days'],
] as const;

/** Which entries are listed: the address is the state. */
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
      <FilterSelect label="Book" options={books} {...of('book')} />
      <FilterSelect label="Since" options={spans} {...of('since')} />
      <FilterText label="About: id or name" lengthMax={256} {...of('about')} />
      <FilterText label="By: id of a token" lengthMax={36} {...of('token')} />
    </div>
  );
}
