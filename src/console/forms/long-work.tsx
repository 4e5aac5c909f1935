import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { Act } from '../parts/act.tsx';
import { ErrorBanner } from '../parts/banner.tsx';
import { useSubmit } from '../server/submit.ts';
import { Ask } from './dialogs.tsx';
import { useTypedCount } from './typed-count.tsx';

export interface LongWorkProps<Progress> {
  title: string;
  kind?: 'main' | 'bad';
  /** Label of the button, if that is not the title. */
  verb?: string;
  /** With how many it is done: many want their number typed. */
  count?: number | undefined;
  /** Why it cannot begin yet. */
  unless?: string | undefined;
  /** Says what will be done with what, and the fields that it takes. */
  children: ComponentChildren;
  /** Does the work, some at a time, and tells how far it is. */
  work(signal: AbortSignal, onProgress: (progress: Progress) => void): Promise<void>;
  /** How far it is, or what came of it. */
  shown(progress: Progress, isDone: boolean): ComponentChildren;
  onClose: () => void;
  onDone: () => void;
}

/** Asks before something is done with many, then shows how far it is; whoever closes it stops the work. */
export function LongWork<Progress>(props: LongWorkProps<Progress>) {
  const { title, kind = 'main', verb = title, count, unless, children } = props;
  const { work, shown, onClose, onDone } = props;
  const typed = useTypedCount(count);
  const isHeld = unless !== undefined || typed.isMissing;
  const [progress, setProgress] = useState<Progress | undefined>();
  const [state, setState] = useState<'asked' | 'begun' | 'done'>('asked');
  const stopping = useRef(new AbortController());
  const { error, isBusy, submit } = useSubmit();
  const start = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isHeld) return;
    setState('begun');
    const { signal } = stopping.current;
    void submit(() =>
      work(signal, setProgress).catch((failure) => !signal.aborted && Promise.reject(failure)),
    )
      .then((isDone) => isDone && setState('done'))
      .then(onDone);
  };
  const close = (): void => {
    stopping.current.abort();
    onClose();
  };
  return (
    <Ask title={title} onClose={close}>
      <form onSubmit={start}>
        {children}
        {state === 'asked' && typed.field}
        {isBusy && <progress aria-label={title} />}
        {progress !== undefined && shown(progress, state === 'done')}
        {error && <ErrorBanner error={error} />}
        <div class="inline">
          {state === 'asked' && (
            <button type="submit" class={`button is-${kind}`} aria-disabled={isHeld} title={unless}>
              {verb}
            </button>
          )}
          <Act onClick={close} isSafe={kind === 'bad'}>
            {state === 'asked' ? 'Cancel' : isBusy ? 'Stop' : 'Close'}
          </Act>
        </div>
      </form>
    </Ask>
  );
}
