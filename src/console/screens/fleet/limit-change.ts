import type { FleetChangeBody, FleetDocument } from '../../../contract/fleet.ts';
import { type Limit, type LimitName, limitGroups, limitText, parseLimit } from './limits.ts';

const limits = limitGroups.flatMap(([, group]) => group);

/** The text typed for each limit; an empty text stands for the configuration's. */
export type LimitTexts = Readonly<Record<LimitName, string>>;

/** Texts in the fields before anything is typed. */
export function textsOf(fleet: FleetDocument): LimitTexts {
  const own = (limit: Limit): string =>
    fleet.own.includes(limit.name) ? limitText(fleet[limit.name] ?? 0, limit.unit) : '';
  return Object.fromEntries(limits.map((limit) => [limit.name, own(limit)])) as LimitTexts;
}

/** The members that were changed; undefined while one of them is no number. */
export function changeOfFleet(
  fleet: FleetDocument,
  name: string,
  texts: LimitTexts,
): FleetChangeBody | undefined {
  const before = textsOf(fleet);
  const change: Record<string, string | number | null> = name === fleet.name ? {} : { name };
  for (const limit of limits) {
    if (texts[limit.name] === before[limit.name]) continue;
    const value = parseLimit(texts[limit.name], limit.unit);
    if (value === undefined) return undefined;
    change[limit.name] = value;
  }
  return change as FleetChangeBody;
}

/** True if a change may remove records: less than before, or what the configuration says. */
export function removesRecords(fleet: FleetDocument, change: FleetChangeBody): boolean {
  return limits.some(({ name, isRetention }) => {
    const [value, before] = [change[name], fleet[name]];
    if (!isRetention || value === undefined) return false;
    return value === null ? name === 'log_retention_seconds' : before === null || value < before;
  });
}

/** The options of the command that makes the same change. */
export function flagsOfChange(change: FleetChangeBody): string[] {
  return Object.entries(change).flatMap(([key, value]) => [
    `--${key.replaceAll('_', '-')}`,
    value === null ? 'default' : String(value),
  ]);
}
