import { useState } from 'preact/hooks';
import { Field } from '../../forms/field.tsx';
import { LongWork } from '../../forms/long-work.tsx';
import { Act } from '../../parts/act.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { sendTo } from '../send/send-to.ts';
import { type BulkEdit, type ChangeProgress, changeDevices, type DeviceSelection } from './selection.ts';

export interface BulkProps {
  fleetId: string;
  selection: DeviceSelection;
  /** The query on the screen, which "all that fit" repeats. */
  queryText: string;
  /** Selects all that fit; undefined if that is so, or there are no others. */
  onAll: (() => void) | undefined;
  onDone: () => void;
  onClear: () => void;
}

const number = (count: number): string => count.toLocaleString('en');

function sentenceOf(selection: DeviceSelection, queryText: string): string {
  if ('ids' in selection) return `${number(selection.ids.length)} selected`;
  const { count } = selection;
  const which = queryText === '' ? 'of the fleet' : `that fit ${queryText}`;
  return count === undefined ? `All ${which}` : `All ${number(count)} ${which}`;
}

/** Offers what can be done with the devices that are selected, one answer for all of them. */
export function Bulk({ fleetId, selection, queryText, onAll, onDone, onClear }: BulkProps) {
  const [asked, setAsked] = useState<'add' | 'remove' | 'enable' | 'disable' | undefined>();
  const target = targetOf(selection);
  const noTarget = 'A broadcast goes to devices of a list, to one tag, or to all: give these a tag first.';
  return (
    <section class="bulk" aria-label="Selected devices">
      <span class="strong" role="status">
        <Untrusted text={sentenceOf(selection, queryText)} />
      </span>
      {onAll && (
        <Act kind="plain" onClick={onAll}>
          Select all that fit
        </Act>
      )}
      <Act kind="plain" onClick={onClear}>
        Clear
      </Act>
      <span class="inline end">
        <Act
          scope="mail"
          unless={target === undefined ? noTarget : undefined}
          onClick={() => {
            sendTo.value = target;
          }}
        >
          Send mail
        </Act>
        <Act scope="provision" onClick={() => setAsked('add')}>
          Add tag
        </Act>
        <Act scope="provision" onClick={() => setAsked('remove')}>
          Remove tag
        </Act>
        <Act scope="provision" onClick={() => setAsked('enable')}>
          Enable
        </Act>
        <Act scope="provision" kind="bad" onClick={() => setAsked('disable')}>
          Disable
        </Act>
      </span>
      {asked && (
        <BulkChange
          fleetId={fleetId}
          selection={selection}
          what={asked}
          sentence={sentenceOf(selection, queryText)}
          onClose={() => setAsked(undefined)}
          onDone={onDone}
        />
      )}
    </section>
  );
}

/** The target of a broadcast that is just what is selected; undefined if there is no such one. */
function targetOf(
  selection: DeviceSelection,
): { devices: readonly string[] } | { tag: string } | { all: true } | undefined {
  if ('ids' in selection) return { devices: selection.ids };
  const [[key, value] = [], ...others] = Object.entries(selection.filter);
  if (key === undefined) return { all: true };
  const [tag, ...tags] = Array.isArray(value) ? value : [];
  return key === 'tag' && others.length === 0 && tags.length === 0 && tag !== undefined ? { tag } : undefined;
}

interface BulkChangeProps {
  fleetId: string;
  selection: DeviceSelection;
  what: 'add' | 'remove' | 'enable' | 'disable';
  sentence: string;
  onClose: () => void;
  onDone: () => void;
}

const titles = { add: 'Add a tag', remove: 'Remove a tag', enable: 'Enable', disable: 'Disable' };

function changeOf(what: BulkChangeProps['what'], tag: string): BulkEdit {
  if (what === 'add') return { add_tags: [tag] };
  if (what === 'remove') return { remove_tags: [tag] };
  return { enabled: what === 'enable' };
}

/** Says again what will be changed, changes it, and shows how far it is. */
function BulkChange({ fleetId, selection, what, sentence, onClose, onDone }: BulkChangeProps) {
  const [tag, setTag] = useState('');
  const needsTag = what === 'add' || what === 'remove';
  return (
    <LongWork<ChangeProgress>
      title={titles[what]}
      work={(signal, onProgress) =>
        changeDevices(fleetId, selection, changeOf(what, tag), signal, onProgress)
      }
      shown={(progress, isDone) => <Outcome progress={progress} isDone={isDone} />}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <Untrusted text={sentence} />.
      </p>
      {needsTag && <Field label="Tag" required maxLength={64} value={tag} onText={setTag} />}
      {what === 'disable' && (
        <p class="soft">Their streams end within a second, and all they send is refused.</p>
      )}
    </LongWork>
  );
}

function Outcome({ progress, isDone }: { progress: ChangeProgress; isDone: boolean }) {
  const { changed, unchanged, refused } = progress;
  return (
    <>
      <p role="status">
        {number(changed)} changed, {number(unchanged)} were so already
        {refused.length > 0 && `, ${refused.length} refused`}
        {isDone ? '.' : ' so far.'}
      </p>
      {refused.map(({ device_id, msg }) => (
        <p class="small" key={device_id}>
          <code>{device_id}</code> {msg}
        </p>
      ))}
    </>
  );
}
