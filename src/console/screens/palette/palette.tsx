import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isPaletteOpen } from '../../frame/palette-key.ts';
import { Icon } from '../../parts/icon.tsx';
import { visible } from '../../parts/untrusted.tsx';
import {
  deviceEntry,
  entriesOfId,
  entriesOfScreen,
  fitting,
  type PaletteEntry,
  standingEntries,
} from './entries.ts';
import { useFoundDevices } from './found-devices.ts';
import { recentEntries, useNamedThings } from './named-things.ts';

/** Of those that fit; more letters find the others. */
const thingsMax = 20;

/** Goes to a device, a mail or a screen, and does what has a name, without a hand on the mouse. */
export function Palette({ fleetId }: { fleetId: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [cursor, setCursor] = useState(0);
  const entries = usePaletteEntries(fleetId, text);
  const at = Math.min(cursor, entries.length - 1);
  useEffect(() => {
    dialog.current?.showModal();
    return () => {
      isPaletteOpen.value = false;
    };
  }, []);
  useEffect(() => {
    document.getElementById(`palette-${at}`)?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  const close = (): void => {
    dialog.current?.close();
    // Its event comes later: one may open it anew before.
    isPaletteOpen.value = false;
  };
  const choose = (entry: PaletteEntry | undefined): void => {
    if (entry === undefined || entry.unless !== undefined) return;
    // First, so that the focus is back where it was before something else takes it.
    close();
    entry.run();
  };
  const onKey = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1 };
    const target = moves[event.key];
    if (target !== undefined) setCursor((target + entries.length) % Math.max(entries.length, 1));
    else if (event.key === 'Enter') choose(entries[at]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      class="palette"
      aria-label="Go to or do"
      ref={dialog}
      onClose={() => {
        isPaletteOpen.value = false;
      }}
      closedby="any"
    >
      <div class="search is-large">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="Go to or do"
          aria-expanded="true"
          aria-controls="palette-entries"
          aria-activedescendant={entries.length > 0 ? `palette-${at}` : undefined}
          placeholder="A device, a screen, something to do…"
          autocomplete="off"
          spellcheck={false}
          maxLength={255}
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            setCursor(0);
          }}
          onKeyDown={onKey}
        />
        <kbd>Esc</kbd>
      </div>
      <Entries entries={entries} at={at} onChoose={choose} />
    </dialog>
  );
}

/** All that can be gone to or done and fits the text, the most exact first. */
function usePaletteEntries(fleetId: string, text: string): readonly PaletteEntry[] {
  const devices = useFoundDevices(fleetId, text);
  const named = useNamedThings(fleetId);
  const standing = useMemo(() => [...entriesOfScreen(), ...standingEntries(fleetId)], [fleetId]);
  const exact = entriesOfId(fleetId, text, devices);
  const { things: looked, mails } = recentEntries(fleetId, text);
  // One that is shown as a device is not shown twice.
  const recent = fitting(looked, text).filter(({ name }) => name !== exact[0]?.name);
  const shown = new Set([...exact, ...recent].map(({ name }) => name));
  const found = devices.filter(({ device_id }) => !shown.has(device_id));
  const things = text.trim() === '' ? [] : fitting(named, text);
  return [
    ...exact,
    ...recent,
    ...fitting(standing, text),
    ...things.slice(0, thingsMax),
    ...found.map((one) => deviceEntry(fleetId, one)),
    ...fitting(mails, text),
  ];
}

interface EntriesProps {
  entries: readonly PaletteEntry[];
  at: number;
  onChoose: (entry: PaletteEntry) => void;
}

function Entries({ entries, at, onChoose }: EntriesProps) {
  return (
    <>
      <div role="listbox" id="palette-entries" aria-label="Found" class="entries">
        {entries.map((entry, index) => {
          const { key, group, name, note, unless } = entry;
          const isFirst = entries[index - 1]?.group !== group;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field, which names the active one
            // biome-ignore lint/a11y/useFocusableInteractive: as above
            <div
              key={key}
              role="option"
              id={`palette-${index}`}
              class={`entry ${isFirst && index > 0 ? 'is-first' : ''}`}
              aria-selected={index === at}
              aria-disabled={unless !== undefined}
              onClick={() => onChoose(entry)}
            >
              <span class="group faint small">{isFirst ? group : ''}</span>
              <span class="cut strong">{visible(name)}</span>
              <span class="cut grow soft small">{visible(unless ?? note ?? '')}</span>
            </div>
          );
        })}
      </div>
      <p class="hint palette-foot" role="status">
        {entries.length === 0
          ? 'Nothing fits. Devices are found by the beginning of their id or name, other things by any part of theirs.'
          : '↑ ↓ and Enter. A mail: id of its device, then its own.'}
      </p>
    </>
  );
}
