import { useState } from 'preact/hooks';
import type { ActionDocument } from '../../../contract/action.ts';
import { go, href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { Ask } from '../../parts/dialogs.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';

export interface ActionToolsProps {
  fleetId: string;
  action: ActionDocument;
  onChanged: () => void;
}

/** Enables, disables or deletes an action; what loses something asks first. */
export function ActionTools({ fleetId, action, onChanged }: ActionToolsProps) {
  const { name, enabled } = action;
  const [asked, setAsked] = useState<'disable' | 'delete' | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const path = `/fleets/${fleetId}/actions/${name}`;
  const close = (): void => setAsked(undefined);
  const setEnabled = (changed: boolean): void =>
    void submit(() => call('PATCH', path, { body: { enabled: changed } })).then((isDone) => {
      if (isDone) close();
      onChanged();
    });
  const remove = (): void =>
    void submit(() => call('DELETE', path)).then((isDone) => isDone && go(href([fleetId, 'actions'])));
  return (
    <>
      {enabled ? (
        <Act scope="admin" onClick={() => setAsked('disable')}>
          Disable
        </Act>
      ) : (
        <Act scope="admin" onClick={() => setEnabled(true)}>
          Enable
        </Act>
      )}
      <Act scope="admin" kind="bad" onClick={() => setAsked('delete')}>
        Delete
      </Act>
      {error && asked === undefined && <span class="wrong">{error.message}</span>}
      {asked && (
        <Ask title={`${asked === 'disable' ? 'Disable' : 'Delete'} ${name}`} onClose={close}>
          <p>
            {asked === 'disable'
              ? 'It takes no notice of what is stored until it is enabled again, and does not make up for it.'
              : 'It goes for good with its versions, state, runs, log and dead letters.'}
          </p>
          {error && <ErrorBanner error={error} />}
          <div class="inline">
            <button
              type="button"
              class={`button ${asked === 'delete' ? 'is-bad' : 'is-main'}`}
              disabled={isBusy}
              onClick={() => (asked === 'disable' ? setEnabled(false) : remove())}
            >
              {asked === 'disable' ? 'Disable' : 'Delete'}
            </button>
            <button type="button" class="button is-plain" onClick={close}>
              Cancel
            </button>
          </div>
        </Ask>
      )}
    </>
  );
}
