import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { useKeys } from '../../page/keys.ts';
import { go, href } from '../../page/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import { isPlainDeviceId } from './device-query.ts';
import { type Suggestion, suggestionsFor } from './suggestions.ts';

export interface QueryBarProps {
  fleetId: string;
  text: string;
  isLarge?: boolean;
}

/** Finds devices: an id opens its device at once, all else is a filter of the list. What is typed is completed. */
export function QueryBar({ fleetId, text, isLarge = false }: QueryBarProps) {
  const field = useRef<HTMLInputElement>(null);
  const list = useId();
  const [typed, setTyped] = useState(text);
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (isLarge) field.current?.focus({ preventScroll: true });
  }, [isLarge]);
  useKeys({ '/': () => field.current?.focus() });
  const suggestions = useSuggestions(fleetId, typed, isOpen);
  const type = (changed: string): void => {
    setTyped(changed);
    setOpen(true);
    setAt(-1);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    setOpen(false);
    const words = typed.trim();
    if (isPlainDeviceId(words)) go(href([fleetId, 'devices', words]));
    else go(href([fleetId, 'devices'], { q: words }));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { length } = suggestions;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && length > 0) {
      event.preventDefault();
      setAt((before) => ((before + step + 1 + length + 1) % (length + 1)) - 1);
    } else if (event.key === 'Enter' && suggestions[at] !== undefined) {
      event.preventDefault();
      type(suggestions[at].text);
    } else if (event.key === 'Escape') {
      if (length > 0) setOpen(false);
      else field.current?.blur();
    }
  };
  return (
    <form class={`search ${isLarge ? 'is-large' : ''}`} aria-label="Search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={field}
        value={typed}
        onInput={({ currentTarget }) => type(currentTarget.value)}
        onKeyDown={onKeyDown}
        onBlur={() => setOpen(false)}
        role="combobox"
        aria-label="Find devices"
        aria-autocomplete="list"
        aria-expanded={suggestions.length > 0}
        aria-controls={list}
        aria-activedescendant={at < 0 ? undefined : `${list}-${at}`}
        placeholder="Device id, beginning of a name, or tag:hall state:offline silent:1h"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        maxLength={1_000}
      />
      <kbd>{typed.trim() === text ? '/' : '⏎'}</kbd>
      <Suggestions id={list} suggestions={suggestions} at={at} onTake={type} />
    </form>
  );
}

/** What a query that is typed may become; the tags of the fleet are read once a tag is being typed. */
export function useSuggestions(fleetId: string, typed: string, isOpen: boolean): readonly Suggestion[] {
  const isTag = isOpen && /(^|\s)tag:\S*$/.test(typed);
  const path = pathTo('/fleets/{fleet_id}/tags', { fleet_id: fleetId });
  const tags = useDocument(isTag ? path : undefined).value;
  return useMemo(() => (isOpen ? suggestionsFor(typed, tags) : []), [typed, isOpen, tags]);
}

interface SuggestionsProps {
  id: string;
  suggestions: readonly Suggestion[];
  /** The one that Enter takes; -1 for none. */
  at: number;
  onTake: (text: string) => void;
}

function Suggestions({ id, suggestions, at, onTake }: SuggestionsProps) {
  return (
    <div
      class="suggestions"
      role="listbox"
      id={id}
      aria-label="Suggestions"
      hidden={suggestions.length === 0}
    >
      {suggestions.map(({ text, word, note }, index) => (
        // The field keeps the focus, and its keys go through the list.
        // biome-ignore lint/a11y/useFocusableInteractive: see above
        <div
          key={text}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === at}
          onMouseDown={(event) => {
            event.preventDefault();
            onTake(text);
          }}
        >
          <code>
            <Untrusted text={word} lengthMax={80} />
          </code>
          <span class="small soft">{note}</span>
        </div>
      ))}
    </div>
  );
}
