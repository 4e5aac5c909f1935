import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Ask } from '../../forms/dialogs.tsx';
import { Field } from '../../forms/field.tsx';
import { go, href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { type SavedQuery, savedMax, savedQueries, saveQueries } from './saved-queries.ts';

/** What most lists are about: the words of a query that say how a device is. */
const states = [
  ['All', ''],
  ['Active', 'state:active'],
  ['Connected', 'state:connected'],
  ['Offline', 'state:offline'],
  ['Silent 1 h', 'silent:1h'],
  ['Refused', 'refused:any enabled:yes'],
  ['Disabled', 'enabled:no'],
] as const;
const stateWord = /(?:^|\s)(?:state|enabled|silent|refused):\S*/g;

/** The query with other words for how a device is. */
export function withStateWord(text: string, word: string): string {
  return `${text.replace(stateWord, '').trim()} ${word}`.trim();
}

/** The words of a query for how a device is, in whatever order they were written. */
function stateWordsOf(text: string): string {
  const words = text.match(stateWord) ?? [];
  return words
    .map((word) => word.trim())
    .sort()
    .join(' ');
}

/** Ways to the lists that are asked for most, and to the queries that were saved. */
export function QuickFilters({ fleetId, text }: { fleetId: string; text: string }) {
  const [isSaving, setSaving] = useState(false);
  const saved = savedQueries(fleetId);
  const current = stateWordsOf(text);
  const own = saved.find((one) => one.text === text);
  return (
    <nav class="chips" aria-label="Quick filters">
      {states.map(([name, word]) => (
        <Chip
          key={name}
          href={href([fleetId, 'devices'], {
            q: word === '' ? undefined : withStateWord(text, word),
            order: word.startsWith('silent:') ? '-seen' : undefined,
          })}
          isCurrent={word === '' ? text === '' : current === stateWordsOf(word)}
        >
          {name}
        </Chip>
      ))}
      {saved.map((one) => (
        <Chip
          key={`saved ${one.name}`}
          href={href([fleetId, 'devices'], { q: one.text })}
          isCurrent={one === own}
          title={one.text}
        >
          <Icon name="search" />
          <Untrusted text={one.name} lengthMax={60} />
        </Chip>
      ))}
      {own !== undefined && (
        <Act
          kind="plain"
          onClick={() =>
            void saveQueries(
              fleetId,
              saved.filter((one) => one !== own),
            )
          }
          title="Only its name is removed"
        >
          Forget this query
        </Act>
      )}
      {own === undefined && text !== '' && (
        <Act
          kind="plain"
          onClick={() => setSaving(true)}
          unless={saved.length < savedMax ? undefined : `${savedMax} are saved: forget one first.`}
        >
          Save this query
        </Act>
      )}
      {isSaving && <SaveQuery fleetId={fleetId} text={text} saved={saved} onClose={() => setSaving(false)} />}
    </nav>
  );
}

interface ChipProps {
  href: string;
  isCurrent: boolean;
  title?: string;
  children: ComponentChildren;
}

function Chip({ href: target, isCurrent, title, children }: ChipProps) {
  return (
    <a class="button is-plain" href={target} title={title} aria-current={isCurrent ? 'true' : undefined}>
      {children}
    </a>
  );
}

interface SaveQueryProps {
  fleetId: string;
  text: string;
  saved: readonly SavedQuery[];
  onClose: () => void;
}

/** Asks for the name of a query; one of the same name is replaced. */
function SaveQuery({ fleetId, text, saved, onClose }: SaveQueryProps) {
  const [name, setName] = useState('');
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const others = saved.filter((one) => one.name !== name.trim());
    saveQueries(fleetId, [...others, { name: name.trim(), text }].slice(-savedMax));
    onClose();
    go(href([fleetId, 'devices'], { q: text }), { replace: true });
  };
  return (
    <Ask title="Save this query" onClose={onClose}>
      <form class="stack" onSubmit={save}>
        <p>
          <code>
            <Untrusted text={text} lengthMax={200} />
          </code>
        </p>
        <Field
          label="Name"
          required
          maxLength={60}
          value={name}
          onText={setName}
          hint="Kept in this browser, for this fleet."
        />
        <div class="inline">
          <button type="submit" class="button is-main">
            Save
          </button>
          <Act kind="plain" onClick={onClose}>
            Cancel
          </Act>
        </div>
      </form>
    </Ask>
  );
}
