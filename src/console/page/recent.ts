import { go, path } from './router.ts';

/** Things of a fleet that were looked at last, of all fleets: as many as one remembers. */
const recentMax = 24;
const kept = 'fleetpost.recent';

export interface Recent {
  /** Parts of its address: the fleet, the screen, the rest. */
  parts: readonly string[];
  /** As the tab is named. */
  title: string;
  /** Name of a device, whose title is its id. */
  note?: string;
}

/** The things looked at last, the latest first. */
export function recents(fleetId: string): Recent[] {
  return all().filter(({ parts }) => parts[0] === fleetId);
}

/** Puts a thing in front of the others. */
export function rememberRecent(recent: Recent): void {
  const address = recent.parts.join('/');
  const others = all().filter(({ parts }) => parts.join('/') !== address);
  localStorage.setItem(kept, JSON.stringify([recent, ...others].slice(0, recentMax)));
}

/** Takes a thing away that is not there any more. */
export function forgetRecent(parts: readonly string[]): void {
  const address = parts.join('/');
  const isLeft = (one: Recent): boolean => {
    const own = one.parts.join('/');
    // The mail of a device goes with it.
    return own !== address && !own.startsWith(`${address}/`);
  };
  localStorage.setItem(kept, JSON.stringify(all().filter(isLeft)));
}

/** Goes to another address from that of a thing which was just deleted. */
export function goFromDeleted(target: string): void {
  forgetRecent(path.value);
  go(target);
}

/** Nothing of the fleet is left in the browser of who has logged out. */
export function forgetRecents(): void {
  localStorage.removeItem(kept);
}

function all(): Recent[] {
  try {
    const read: unknown = JSON.parse(localStorage.getItem(kept) ?? '[]');
    return Array.isArray(read) ? read.filter(isRecent) : [];
  } catch {
    return [];
  }
}

/** Another version of the console may have written there. */
function isRecent(one: unknown): one is Recent {
  const { parts, title, note = '' } = (one ?? {}) as Partial<Recent>;
  return (
    typeof title === 'string' &&
    typeof note === 'string' &&
    Array.isArray(parts) &&
    parts.every((part) => typeof part === 'string')
  );
}
