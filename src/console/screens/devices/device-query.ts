import type { DeviceFilterDocument } from '../../../contract/device.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';

/** The query bar's filter, as the API and the CLI take it. */
export interface ParsedQuery {
  filter: DeviceFilterDocument;
  flags: string[];
  /** Words that are no filter, each with a sentence. */
  problems: string[];
}

const deviceIdPattern = /^[A-Za-z0-9]{10}$/;
const states = ['connected', 'active', 'offline'] as const;
const reasons = ['any', 'wrong_secret', 'schema_mismatch', 'rate_limited', 'disabled', 'other'] as const;

export const queryWords = 'tag: state: name: id: enabled: seen< seen> silent: waiting> refused:';

/** True if the whole text is a device id as generated, which opens it: other letters may be a name. */
export function isPlainDeviceId(text: string): boolean {
  const word = text.trim();
  return deviceIdPattern.test(word) && word === word.toUpperCase();
}

/** Words of a query; one in double quotes may hold spaces: `name:"Lamp 4"`. */
function wordsOf(text: string): string[] {
  return (text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []).map((one) => one.replaceAll('"', ''));
}

/** Reads the text of the query bar: filters that indexes answer, no more. */
export function parseDeviceQuery(text: string): ParsedQuery {
  const query: ParsedQuery = { filter: {}, flags: [], problems: [] };
  const bare: string[] = [];
  for (const word of wordsOf(text)) {
    const [, key = '', operator = '', value = ''] = /^([a-z]+)([:<>])(.*)$/s.exec(word) ?? ['', '', '', word];
    // Words without a filter are one name, as a person types it: Lamp 4.
    if (operator === '') bare.push(word);
    else {
      const problem = takeFilter(query, key, operator, value);
      if (problem !== undefined) query.problems.push(problem);
    }
  }
  const problem = bare.length === 0 ? undefined : takeName(query, bare.join(' '));
  if (problem !== undefined) query.problems.push(problem);
  return query;
}

/** The whole text as the beginning of an id, or all of one, if it can be that. */
export function asIdPrefix(text: string): string | undefined {
  const [, word] = /^\s*(?:id:)?([A-Za-z0-9]{1,10})\s*$/.exec(text) ?? [];
  return word;
}

function takeName({ filter, flags }: ParsedQuery, value: string): string | undefined {
  if (filter.name_prefix !== undefined) return `“${value}”: one name at a time.`;
  filter.name_prefix = value;
  flags.push('--name-prefix', value);
  return undefined;
}

function takeFilter(query: ParsedQuery, key: string, operator: string, value: string): string | undefined {
  const { filter, flags } = query;
  if (key === 'seen' || key === 'waiting' || key === 'silent') return takeTime(query, key, operator, value);
  if (key === 'refused' && operator === ':') return takeReason(query, value || 'any');
  if (operator !== ':' || value === '') return `“${key}${operator}${value}” is no filter: ${queryWords}`;
  switch (key) {
    case 'tag':
      filter.tag = [...(filter.tag ?? []), value];
      flags.push('--tag', value);
      return undefined;
    case 'name':
      return takeName(query, value);
    case 'id':
      if (!/^[A-Za-z0-9]{1,10}$/.test(value)) return `id:${value}: an id is 10 letters or digits.`;
      filter.id_prefix = value;
      flags.push('--id-prefix', value);
      return undefined;
    case 'state': {
      if (value === 'disabled') return takeFilter(query, 'enabled', ':', 'no');
      const state = states.find((one) => one === value);
      if (state === undefined) return `state:${value}: one of ${states.join(', ')} or disabled.`;
      filter.state = state;
      flags.push('--state', value);
      return undefined;
    }
    case 'enabled':
      if (value !== 'yes' && value !== 'no') return `enabled:${value}: yes or no.`;
      filter.enabled = value === 'yes';
      flags.push(value === 'yes' ? '--enabled' : '--disabled');
      return undefined;
    default:
      return `“${key}:” is no filter: ${queryWords}`;
  }
}

function takeReason({ filter, flags }: ParsedQuery, value: string): string | undefined {
  const reason = reasons.find((one) => one === value);
  if (reason === undefined) return `refused:${value}: one of ${reasons.join(', ')}.`;
  filter.refused = reason;
  flags.push('--refused', reason);
  return undefined;
}

type TimeFilter = 'seen_after' | 'seen_before' | 'silent_after' | 'waiting_before';
const timeFilters: Readonly<Record<string, readonly [TimeFilter, string]>> = {
  'seen<': ['seen_after', '--seen-after'],
  'seen>': ['seen_before', '--seen-before'],
  'silent:': ['silent_after', '--silent-after'],
  'waiting>': ['waiting_before', '--waiting-before'],
};

function takeTime(
  { filter, flags }: ParsedQuery,
  key: string,
  operator: string,
  value: string,
): string | undefined {
  const [parameter, flag] = timeFilters[key + operator] ?? [];
  const spanMs = parseSpan(value);
  if (parameter === undefined || flag === undefined || spanMs === undefined)
    return `“${key}${operator}${value}”: a span, as in seen<2d, seen>12h, silent:1h or waiting>10m.`;
  filter[parameter] = new Date(serverNow() - spanMs).toISOString();
  flags.push(flag, value.replace('min', 'm'));
  return undefined;
}
