import { go, href } from '../../page/router.ts';

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
  const value = (name: string): string => parameters.get(name) ?? '';
  const set = (name: string, changed: string): void => {
    const { after: _, ...others } = Object.fromEntries(parameters);
    go(href([fleetId, 'dead-letters'], { ...others, [name]: changed }), { replace: true });
  };
  const choice = (name: string, label: string, options: readonly (readonly [string, string])[]) => (
    <select
      class="select"
      aria-label={label}
      value={value(name)}
      onChange={({ currentTarget }) => set(name, currentTarget.value)}
    >
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  );
  const field = (name: string, label: string, lengthMax: number) => (
    <input
      class="input"
      aria-label={label}
      placeholder={label}
      value={value(name)}
      maxLength={lengthMax}
      spellcheck={false}
      onChange={({ currentTarget }) => set(name, currentTarget.value.trim())}
    />
  );
  return (
    <div class="filters">
      {choice('reason', 'Reason', reasons)}
      {choice('since', 'Since', spans)}
      {field('name', 'Name of the mail', 255)}
      {field('device', 'Device id', 10)}
    </div>
  );
}
