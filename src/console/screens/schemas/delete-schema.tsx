import { ErrorBanner } from '../../parts/banner.tsx';
import { Ask } from '../../parts/dialogs.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import type { SchemaUse } from './schema-uses.ts';

export interface AskDeleteProps {
  path: string;
  kind: string;
  name: string;
  uses: readonly SchemaUse[];
  onClose: () => void;
  onDone: () => void;
}

/** Asks before a schema is deleted, with what names it. */
export function AskDelete({ path, kind, name, uses, onClose, onDone }: AskDeleteProps) {
  const { error, isBusy, submit } = useSubmit();
  const remove = (): void => void submit(() => call('DELETE', path)).then((isDone) => isDone && onDone());
  return (
    <Ask title={`Delete the ${kind} schema ${name}`} onClose={onClose}>
      <p>
        {kind === 'mail'
          ? 'Mail of this name may hold anything from then on.'
          : `Each ${kind} of this name is refused from then on. Records that are stored stay.`}
      </p>
      {uses.length > 0 && (
        <p class="warn">
          {uses.map(({ what, name: of }) => `${what} ${of}`).join(', ')}{' '}
          {uses.length === 1 ? 'names' : 'name'} it, and will find nothing.
        </p>
      )}
      {error && <ErrorBanner error={error} />}
      <div class="inline">
        <button type="button" class="button is-bad" disabled={isBusy} onClick={remove}>
          Delete
        </button>
        <button type="button" class="button is-plain" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Ask>
  );
}

/** Asks before what was written is thrown away. */
export function AskDiscard({ onClose, onDiscard }: { onClose: () => void; onDiscard: () => void }) {
  return (
    <Ask title="Discard what you have written?" onClose={onClose}>
      <p>What is stored stays as it is. What you wrote cannot be had back.</p>
      <div class="inline">
        <button
          type="button"
          class="button is-bad"
          onClick={() => {
            onClose();
            onDiscard();
          }}
        >
          Discard
        </button>
        <button type="button" class="button is-plain" onClick={onClose}>
          Go on writing
        </button>
      </div>
    </Ask>
  );
}
