import { useEffect, useRef, useState } from 'preact/hooks';
import { useKeys } from '../../page/keys.ts';
import { go, href } from '../../page/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { isPlainDeviceId } from './device-query.ts';

export interface QueryBarProps {
  fleetId: string;
  text: string;
  isLarge?: boolean;
}

/** Finds devices: an id opens its device at once, all else is a filter of the list. */
export function QueryBar({ fleetId, text, isLarge = false }: QueryBarProps) {
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (isLarge) field.current?.focus({ preventScroll: true });
  }, [isLarge]);
  useKeys({ '/': () => field.current?.focus() });
  const submit = (event: Event): void => {
    event.preventDefault();
    const words = typed.trim();
    if (isPlainDeviceId(words)) go(href([fleetId, 'devices', words]));
    else go(href([fleetId, 'devices'], { q: words }));
  };
  return (
    <form class={`search ${isLarge ? 'is-large' : ''}`} aria-label="Search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={field}
        value={typed}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        onKeyDown={({ key, currentTarget }) => key === 'Escape' && currentTarget.blur()}
        aria-label="Find devices"
        placeholder="Device id, name, or tag:hall state:offline waiting>10m"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        maxLength={1_000}
      />
      <kbd>{typed.trim() === text ? '/' : '⏎'}</kbd>
    </form>
  );
}
