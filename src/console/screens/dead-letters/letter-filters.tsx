import { addressFilter, FilterSelect, FilterText } from '../../lists/filters.tsx';

const reasons = [
  ['', 'all reasons'],
  ['rejected', 'rejected'],
  ['expired', 'expired'],
  ['over_requeued', 'requeued too often'],
  ['mailbox_full', 'mailbox full'],
] as const;
const spans = [
  ['', 'of all times'],
  ['1h', 'of the last hour'],
  ['1d', 'of the last day'],
  ['7d', 'of the last 7 days'],
] as const;

/** Which letters are listed: the address is the state. */
export function LetterFilters({ fleetId, parameters }: { fleetId: string; parameters: URLSearchParams }) {
  const of = (name: string) => addressFilter([fleetId, 'dead-letters'], parameters, name);
  return (
    <div class="filters">
      <FilterSelect label="Reason" options={reasons} {...of('reason')} />
      <FilterSelect label="Since" options={spans} {...of('since')} />
      <FilterText label="Name of the mail" lengthMax={255} {...of('name')} />
      <FilterText label="Device id" lengthMax={10} {...of('device')} />
    </div>
  );
}
