import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';

/** True while the palette is shown. */
export const isPaletteOpen = signal(false);

/** Shows the palette, unless a dialog asks something that is to be answered first. */
export function openPalette(): void {
  if (document.querySelector('dialog[open]') === null) isPaletteOpen.value = true;
}

/** Ctrl-K, or Command-K, from anywhere: also while one types, and as soon as there is something to see. */
export function usePaletteKey(): void {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isMeant = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      if (!isMeant || event.key.toLowerCase() !== 'k') return;
      // Browsers put the focus into their own search.
      event.preventDefault();
      openPalette();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}
