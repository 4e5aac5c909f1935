import { useState } from 'preact/hooks';
import { Field } from '../../forms/field.tsx';
import { LongWork } from '../../forms/long-work.tsx';
import { tellDone } from '../../forms/toast.tsx';
import { typedFrom } from '../../forms/typed-count.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useSubmit } from '../../server/submit.ts';
import { sendTo } from '../send/send-to.ts';
import {
  type BulkEdit,
  type ChangeProgress,
  changeDevices,
  type DeviceSelection,
  devicesText,
  inverseOf,
  useDeviceCount,
} from './selection.ts';

export interface BulkProps {
  fleetId: string;
  selection: DeviceSelection;
  /** Selects all that fit; undefined if that is so. */
  onAll: (() => void) | undefined;
  onDone: () => void;
  onClear: () => void;
}

type Verb = 'add' | 'remove' | 'enable' | 'disable';

const number = (count: number): string => count.toLocaleString('en');

function sentenceOf(selection: DeviceSelection, count: number | undefined): string {
  if ('ids' in selection) return `${number(selection.ids.length)} selected`;
  const which = selection.text === '' ? 'of the fleet' : `that fit ${selection.text}`;
  return count === undefined ? `All ${which}` : `All ${number(count)} ${which}`;
}

/** Offers what can be done with the devices that are selected, one answer for all of them. */
export function Bulk({ fleetId, selection, onAll, onDone: onChanged, onClear }: BulkProps) {
  const [asked, setAsked] = useState<Verb | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const counted = useDeviceCount(fleetId, selection);
  const count = counted.value?.devices;
  const sentence = sentenceOf(selection, count);
  const onDone = (): void => {
    // What fits may be another number now.
    counted.refresh();
    onChanged();
  };
  // Few are changed at once: it can be taken back.
  const set = (isEnabled: boolean): void => {
    if (count === undefined || count > typedFrom) {
      setAsked(isEnabled ? 'enable' : 'disable');
      return;
    }
    const change = { enabled: isEnabled };
    void submit(async () => {
      tellChanged(fleetId, change, await changeDevices(fleetId, selection, change));
      onDone();
    });
  };
  return (
    <section class="bulk" aria-label="Selected devices">
      <span class="strong" role="status">
        <Untrusted text={sentence} />
      </span>
      {onAll && (
        <Act kind="plain" onClick={onAll}>
          Select all that fit
        </Act>
      )}
      <Act kind="plain" onClick={onClear}>
        Clear
      </Act>
      <BulkActs
        unless={isBusy ? 'On its way' : count === 0 ? 'None fits.' : undefined}
        onMail={() => {
          sendTo.value = selection;
        }}
        onTag={setAsked}
        onSet={set}
      />
      {error && <ErrorBanner error={error} />}
      {asked && (
        <BulkChange
          fleetId={fleetId}
          selection={selection}
          what={asked}
          sentence={sentence}
          count={count}
          onClose={() => setAsked(undefined)}
          onDone={onDone}
        />
      )}
    </section>
  );
}

interface BulkActsProps {
  unless: string | undefined;
  onMail: () => void;
  onTag: (what: 'add' | 'remove') => void;
  onSet: (isEnabled: boolean) => void;
}

/** The buttons for what can be done with what is selected. */
function BulkActs({ unless, onMail, onTag, onSet }: BulkActsProps) {
  return (
    <span class="inline end">
      <Act scope="mail" unless={unless} onClick={onMail}>
        Send mail
      </Act>
      <Act scope="provision" unless={unless} onClick={() => onTag('add')}>
        Add tag
      </Act>
      <Act scope="provision" unless={unless} onClick={() => onTag('remove')}>
        Remove tag
      </Act>
      <Act scope="provision" unless={unless} onClick={() => onSet(true)}>
        Enable
      </Act>
      <Act scope="provision" unless={unless} kind="bad" onClick={() => onSet(false)}>
        Disable
      </Act>
    </span>
  );
}

interface BulkChangeProps {
  fleetId: string;
  selection: DeviceSelection;
  what: Verb;
  sentence: string;
  /** Undefined until it is known. */
  count: number | undefined;
  onClose: () => void;
  onDone: () => void;
}

const titles = { add: 'Add a tag', remove: 'Remove a tag', enable: 'Enable', disable: 'Disable' };

function changeOf(what: Verb, tag: string): BulkEdit {
  if (what === 'add') return { add_tags: [tag] };
  if (what === 'remove') return { remove_tags: [tag] };
  return { enabled: what === 'enable' };
}

function verbOf(what: Verb, count: number | undefined): string {
  const devices = count === undefined ? '…' : devicesText(count);
  if (what === 'add') return `Add the tag to ${devices}`;
  return what === 'remove' ? `Remove the tag from ${devices}` : `${titles[what]} ${devices}`;
}

/** Says again what will be changed, changes it, and shows how far it is. */
function BulkChange({ fleetId, selection, what, sentence, count, onClose, onDone }: BulkChangeProps) {
  const [tag, setTag] = useState('');
  const needsTag = what === 'add' || what === 'remove';
  const change = changeOf(what, tag.trim());
  return (
    <LongWork<ChangeProgress>
      title={titles[what]}
      kind={what === 'disable' ? 'bad' : 'main'}
      verb={verbOf(what, count)}
      count={count}
      unless={count === undefined ? 'They are being counted.' : undefined}
      work={async (signal, onProgress) => {
        const progress = await changeDevices(fleetId, selection, change, signal, onProgress);
        if (progress.refused.length > 0) return;
        tellChanged(fleetId, change, progress);
        onClose();
      }}
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

/** Says what was changed, and offers to take it back from those that were not so before. */
function tellChanged(fleetId: string, change: BulkEdit, progress: ChangeProgress): void {
  const { changed, unchanged, refused, changedIds } = progress;
  const devices = devicesText(changed);
  const done =
    'enabled' in change
      ? `${change.enabled ? 'Enabled' : 'Disabled'} ${devices}`
      : 'add_tags' in change
        ? `Added the tag ${change.add_tags.join()} to ${devices}`
        : `Removed the tag ${change.remove_tags.join()} from ${devices}`;
  const text = changed === 0 ? 'Nothing was changed' : done;
  const rest = [
    unchanged > 0 && `${devicesText(unchanged)} ${unchanged === 1 ? 'was' : 'were'} so already`,
    refused.length > 0 && `${refused.length} refused: ${refused[0]?.device_id} ${refused[0]?.msg}`,
  ];
  const undo = (ids: readonly string[]) => () => changeDevices(fleetId, { ids }, inverseOf(change));
  tellDone(
    `${[text, ...rest.filter(Boolean)].join('; ')}.`,
    changed > 0 && changedIds !== undefined ? undo(changedIds) : undefined,
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
