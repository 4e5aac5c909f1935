import { serverNow } from '../server/clock.ts';
import { SelectField } from './field.tsx';

const dayMs = 86_400_000;
const spans = [
  ['1', 'in a day'],
  ['30', 'in 30 days'],
  ['90', 'in 90 days'],
  ['365', 'in a year'],
  ['', 'never'],
] as const;

/** When what is made ends: one of a few spans. */
export function ExpiryField() {
  return <SelectField label="Expires" name="expires" options={spans} defaultValue="90" />;
}

/** The time that `ExpiryField` stands for, at the server; null: never. */
export function expiryTime(days: string): string | null {
  return days === '' ? null : new Date(serverNow() + Number(days) * dayMs).toISOString();
}
