import { signal } from '@preact/signals';

/** A query of this browser under a name. */
export interface SavedQuery {
  name: string;
  text: string;
}

/** Queries that are saved for a fleet, in this browser. */
export const savedMax = 20;
const prefix = 'fleetpost.queries.';

/** What is saved, by fleet, once it was asked for. */
const saved = signal<ReadonlyMap<string, readonly SavedQuery[]>>(new Map());
addEventListener('storage', ({ key }) => {
  if (key?.startsWith(prefix)) saved.value = new Map();
});

function isQuery(one: unknown): one is SavedQuery {
  const { name, text } = (one ?? {}) as Partial<Record<string, unknown>>;
  return typeof name === 'string' && typeof text === 'string';
}

function stored(fleetId: string): SavedQuery[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(prefix + fleetId) ?? '[]');
    return Array.isArray(found) ? found.filter(isQuery).slice(0, savedMax) : [];
  } catch {
    return [];
  }
}

/** The queries that are saved for a fleet. */
export function savedQueries(fleetId: string): readonly SavedQuery[] {
  return saved.value.get(fleetId) ?? stored(fleetId);
}

/** Saves these instead of what is saved. Returns false if the browser keeps nothing: then they last as long as the tab. */
export function saveQueries(fleetId: string, queries: readonly SavedQuery[]): boolean {
  saved.value = new Map([...saved.peek(), [fleetId, queries]]);
  try {
    localStorage.setItem(prefix + fleetId, JSON.stringify(queries));
    return true;
  } catch {
    return false;
  }
}
