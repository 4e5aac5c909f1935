import { computed, signal } from '@preact/signals';
import { beginEntry, returnToEntry, startEntries } from './history-entry.ts';

/** Path at which the console is served. */
const base = '/console';

/** The address of the page, which is the state of its screen. */
const address = signal(location.pathname + location.search);

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const path = computed(() =>
  (address.value.split('?', 1)[0] ?? '').slice(base.length).split('/').filter(Boolean).map(decoded),
);
export const search = computed(() => new URLSearchParams(address.value.split('?')[1] ?? ''));

/** The address of a screen, parts and parameters encoded. */
export function href(parts: readonly string[], parameters: Record<string, string | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (value) query.set(key, value);
  const text = query.toString();
  return `${base}/${parts.map(encodeURIComponent).join('/')}${text && `?${text}`}`;
}

/** Goes to a screen; `replace` for a change that is no step of its own. */
export function go(target: string, { replace = false } = {}): void {
  if (replace) history.replaceState(history.state, '', target);
  else history.pushState(beginEntry(), '', target);
  const isSameScreen = target.split('?', 1)[0] === address.peek().split('?', 1)[0];
  address.value = location.pathname + location.search;
  if (!isSameScreen) scrollTo(0, 0);
}

/** Follows the links and the history of this page without loading it again. */
export function startRouter(): void {
  startEntries();
  addEventListener('popstate', () => {
    returnToEntry();
    address.value = location.pathname + location.search;
  });
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
    if (
      link === null ||
      event.defaultPrevented ||
      !isPlain ||
      link.target !== '' ||
      link.hasAttribute('download')
    )
      return;
    if (link.origin !== location.origin || !link.pathname.startsWith(`${base}/`)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
