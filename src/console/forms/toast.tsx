import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { useKeys } from '../page/keys.ts';
import { Act } from '../parts/act.tsx';
import { Untrusted } from '../parts/untrusted.tsx';
import { useSubmit } from '../server/submit.ts';

interface Done {
  /** What was done, in a sentence. */
  text: string;
  /** Takes it back; absent: that cannot be. */
  undo?: () => Promise<unknown>;
}

const shownMs = 12_000;
const done = signal<Done | undefined>(undefined);

/** Says for some seconds what was done, and takes it back if asked to. */
export function tellDone(text: string, undo?: () => Promise<unknown>): void {
  done.value = { text, ...(undo && { undo }) };
}

/** What was done last, at the foot of the page. It stays while somebody points at it. */
export function Toast() {
  const shown = done.value;
  const [isHeld, setHeld] = useState(false);
  const { error, isBusy, submit } = useSubmit();
  const { undo } = shown ?? {};
  const takeBack = (): void => {
    if (undo === undefined || isBusy) return;
    void submit(undo).then((isUndone) => isUndone && tellDone('Undone.'));
  };
  useKeys({ z: takeBack });
  useEffect(() => {
    if (shown === undefined || isHeld || isBusy || error) return;
    const timer = setTimeout(() => {
      done.value = undefined;
    }, shownMs);
    return () => clearTimeout(timer);
  }, [shown, isHeld, isBusy, error]);
  return (
    <div
      class={shown ? 'toast' : 'visually-hidden'}
      role="status"
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={() => setHeld(false)}
      onFocusIn={() => setHeld(true)}
      onFocusOut={() => setHeld(false)}
    >
      {shown && (
        <>
          <span class={error ? 'bad' : ''}>
            <Untrusted text={error?.message ?? shown.text} lengthMax={300} />
          </span>
          {undo && (
            <Act onClick={takeBack} unless={isBusy ? 'On its way' : undefined}>
              Undo <kbd>z</kbd>
            </Act>
          )}
          <Act
            kind="plain"
            onClick={() => {
              done.value = undefined;
            }}
          >
            Close
          </Act>
        </>
      )}
    </div>
  );
}
