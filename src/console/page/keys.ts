import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** Every single key, and what it does where it does something: the list that `?` shows. */
export const keyMeanings = {
  '/': 'find devices',
  j: 'next row',
  k: 'previous row',
  o: 'open the row',
  x: 'select the row',
  s: 'send mail',
  n: 'make a new one',
  r: 'read again; of dead letters, replay',
  d: 'drop dead letters',
  p: 'pause or resume',
  z: 'take back what was just done',
  ' ': 'pause or resume',
  '?': 'these keys',
} as const;
export type ScreenKey = keyof typeof keyMeanings;

/** Keys together with others, which act while one types, too. */
export const combinations = [
  ['Ctrl K', 'go to or do anything'],
  ['Ctrl ⏎', 'send, run, store'],
  ['Shift click', 'select a range'],
  ['Ctrl click', 'open in another tab'],
  ['Ctrl Space', 'complete, in an editor'],
  ['F8', 'next error, in an editor'],
  ['Esc', 'close; leave an editor, then Tab'],
] as const;

/** True while the keys are listed. */
export const areKeysShown = signal(false);

type KeyActions = Readonly<Partial<Record<ScreenKey, () => void>>>;
const acting = new Set<KeyActions>();

/** Keys that do something on the screen as it is. */
export function actingKeys(): ReadonlySet<string> {
  return new Set([...acting].flatMap((actions) => Object.keys(actions)));
}

/** True if the key is meant for a field, a menu or a dialog. */
function isTyping(event: KeyboardEvent): boolean {
  // An editor is in a shadow root, from which an event seems to come from its host.
  const [target] = event.composedPath();
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  if (!(target instanceof HTMLElement)) return false;
  const field = target.closest('input:not([type=checkbox]), textarea, select, dialog');
  return field !== null || target.isContentEditable;
}

/** Acts on single keys while the screen is shown and nobody types. */
export function useKeys(actions: KeyActions): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const act = actions[event.key as ScreenKey];
      if (act === undefined || isTyping(event) || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', onKey);
    acting.add(actions);
    return () => {
      removeEventListener('keydown', onKey);
      acting.delete(actions);
    };
  });
}
