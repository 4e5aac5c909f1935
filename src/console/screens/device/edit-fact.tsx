import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { DeviceChangeBody, ShownDeviceDocument } from '../../../contract/device.ts';
import { wordsIn } from '../../forms/words.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { shownText, Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { useSubmit } from '../../server/submit.ts';

export interface EditProps {
  fleetId: string;
  device: ShownDeviceDocument;
  onEnd: (isChanged: boolean) => void;
}

/** The name of a device, as it is written anew. */
export function EditName({ fleetId, device, onEnd }: EditProps) {
  const [name, setName] = useState(device.name);
  return (
    <EditForm fleetId={fleetId} device={device} change={() => ({ name: name.trim() })} onEnd={onEnd}>
      <input
        class="input"
        aria-label="Name"
        maxLength={255}
        value={name}
        ref={focusOnce}
        onInput={({ currentTarget }) => setName(currentTarget.value)}
      />
    </EditForm>
  );
}

/** The tags of a device: each goes by its cross, and new ones are written behind. */
export function EditTags({ fleetId, device, onEnd }: EditProps) {
  const [tags, setTags] = useState<readonly string[]>(device.tags);
  const [text, setText] = useState('');
  const change = () => ({ tags: [...new Set([...tags, ...(wordsIn(text) ?? [])])] });
  return (
    <EditForm fleetId={fleetId} device={device} change={change} onEnd={onEnd}>
      <span class="tags">
        {tags.map((tag) => (
          <button
            type="button"
            class="tag"
            key={tag}
            aria-label={`Remove ${shownText(tag, 80)}`}
            onClick={() => setTags(tags.filter((one) => one !== tag))}
          >
            <Untrusted text={tag} lengthMax={64} /> <span aria-hidden="true">×</span>
          </button>
        ))}
      </span>
      <input
        class="input"
        aria-label="New tags"
        placeholder="New tags, parted by commas"
        value={text}
        ref={focusOnce}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
    </EditForm>
  );
}

function focusOnce(input: HTMLInputElement | null): void {
  input?.focus();
}

interface EditFormProps extends EditProps {
  change: () => DeviceChangeBody;
  children: ComponentChildren;
}

function EditForm({ fleetId, device, change, onEnd, children }: EditFormProps) {
  const { error, isBusy, submit } = useSubmit();
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const path = pathOfDevice(fleetId, device.device_id);
    if (await submit(() => call('PATCH', path, { body: change() }))) onEnd(true);
  };
  return (
    <form class="stack" onSubmit={save} onKeyDown={({ key }) => key === 'Escape' && onEnd(false)}>
      {children}
      {error && <ErrorBanner error={error} />}
      <span class="inline">
        <button type="submit" class="button is-main" disabled={isBusy}>
          Save
        </button>
        <Act kind="plain" onClick={() => onEnd(false)}>
          Cancel
        </Act>
      </span>
    </form>
  );
}
