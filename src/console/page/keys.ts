import { useEffect } from 'preact/hooks';

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
export function useKeys(actions: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const act = actions[event.key];
      if (act === undefined || isTyping(event) || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
}
