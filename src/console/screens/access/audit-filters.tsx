import { go, href } from '../../page/router.ts';

const books = [
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
  const value = (name: string): string => parameters.get(name) ?? '';
  const set = (name: string, changed: string): void => {
    const { after: _, ...others } = Object.fromEntries(parameters);
    go(href([fleetId, 'access', 'audit'], { ...others, [name]: changed }), { replace: true });
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
      {choice('fleet', 'Fleet', [
        ['', 'the whole server'],
        [fleetId, `this fleet, ${fleetId}`],
      ])}
      {choice('book', 'Book', books)}
      {choice('since', 'Since', spans)}
      {field('about', 'About: id or name', 256)}
      {field('token', 'By: id of a token', 36)}
    </div>
  );
}
