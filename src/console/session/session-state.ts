import { signal } from '@preact/signals';

const kept = 'fleetpost.session';

/** Whether somebody is logged in. `ended`: the page waits, as it is, for the next login. */
export const access = signal<'in' | 'ended' | 'out'>('out');
/** Why nobody is logged in any more, in the server's words. */
export const endedBecause = signal<string | undefined>(undefined);

/**
 * The half of the session's secret that the page keeps. All tabs of this origin share it, and no program on another port
 * of the host does, as it does the cookie with the other half.
 */
export function pageKey(): string | undefined {
  return localStorage.getItem(kept) ?? undefined;
}

export function keepPageKey(key: string): void {
  localStorage.setItem(kept, key);
}

/** Says that the session has ended. Its key stays: after a reload the server says why once more. */
export function endSession(reason: string): void {
  endedBecause.value = reason;
  if (access.value === 'in') access.value = 'ended';
}

/** Leaves, in all tabs. */
export function leave(reason: string): void {
  localStorage.removeItem(kept);
  endedBecause.value = reason;
  access.value = 'out';
}

/** Calls what is to follow a login or a logout in another tab. */
export function onOtherTab(changed: (key: string | undefined) => void): void {
  addEventListener('storage', ({ key, newValue }) => {
    // Null: all of the storage was cleared.
    if (key === kept || key === null) changed(key === null ? undefined : (newValue ?? undefined));
  });
}

/** Waits, after the end of a session, until there is another. Rejects when the page is left instead. */
export function nextSession(stopping?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      if (access.peek() === 'ended' && !stopping?.aborted) return;
      queueMicrotask(() => stop());
      stopping?.removeEventListener('abort', settle);
      if (access.peek() === 'in' && !stopping?.aborted) resolve();
      else reject(new Error(endedBecause.peek()));
    };
    stopping?.addEventListener('abort', settle);
    const stop = access.subscribe(settle);
  });
}
