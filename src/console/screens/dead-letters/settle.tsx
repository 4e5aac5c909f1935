import { useRef, useState } from 'preact/hooks';
import { Ask } from '../../forms/dialogs.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { useSubmit } from '../../server/submit.ts';
import { type Letters, type LettersProgress, settleLetters } from './letters.ts';

export interface SettleProps {
  fleetId: string;
  verb: 'replay' | 'drop';
  letters: Letters;
  onClose: () => void;
  onDone: () => void;
}

const words = {
  replay: { title: 'Replay', sentence: 'Each is queued again as a new mail, at the end of its mailbox.' },
  drop: { title: 'Drop', sentence: 'They are removed for good, with their payloads.' },
};

/** Asks before many letters are replayed or dropped, then says what became of them by reason. */
export function SettleDialog({ fleetId, verb, letters, onClose, onDone }: SettleProps) {
  const [progress, setProgress] = useState<LettersProgress | undefined>();
  const stopping = useRef(new AbortController());
  const { error, isBusy, submit } = useSubmit();
  const { title, sentence } = words[verb];
  const which =
    'filter' in letters
      ? 'All letters that fit the filter'
      : letters.listed.length === 1
        ? 'One letter'
        : `${letters.listed.length.toLocaleString('en')} letters`;
  const start = (): void => {
    setProgress({ counts: {}, isDone: false });
    void submit(async () => {
      try {
        await settleLetters(fleetId, verb, letters, stopping.current.signal, setProgress);
      } catch (failure) {
        if (!stopping.current.signal.aborted) throw failure;
      }
    }).then(onDone);
  };
  const close = (): void => {
    stopping.current.abort();
    onClose();
  };
  const counts = Object.entries(progress?.counts ?? {}).sort();
  return (
    <Ask title={title} onClose={close}>
      <p>
        {which}. {sentence}
      </p>
      {isBusy && <progress aria-label={title} />}
      {progress && (
        <p role="status">
          {counts
            .map(([result, count]) => `${count.toLocaleString('en')} ${result.replaceAll('_', ' ')}`)
            .join(', ')}
          {progress.isDone ? (counts.length === 0 ? 'None was left.' : '.') : ' so far'}
        </p>
      )}
      {error && <ErrorBanner error={error} />}
      <div class="inline">
        {progress === undefined && (
          <button type="button" class="button is-main" onClick={start}>
            {title}
          </button>
        )}
        <button type="button" class="button" onClick={close}>
          {progress === undefined ? 'Cancel' : isBusy ? 'Stop' : 'Close'}
        </button>
      </div>
    </Ask>
  );
}
