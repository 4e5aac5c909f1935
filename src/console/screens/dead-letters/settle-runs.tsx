import { useState } from 'preact/hooks';
import { below, type Path } from '../../../contract/routes/path.ts';
import { Ask } from '../../forms/dialogs.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';

/** One dead letter of an action, or all of them, to replay or drop. */
export interface SettledRuns {
  verb: 'replay' | 'drop';
  /** Undefined: all of them. */
  run: number | undefined;
}

export interface SettleRunsProps {
  /** Path of the dead letters in the API. */
  path: Path<'/fleets/{fleet_id}/actions/{name}/dead-letters'>;
  asked: SettledRuns;
  onClose: () => void;
  onDone: () => void;
}

const sentences = {
  replay: 'Each has all its attempts again, with the version that is deployed now.',
  drop: 'They are removed for good, with their records.',
};

/** Asks before runs are replayed or dropped, then says how many. */
export function SettleRunsDialog({ path, asked: { verb, run }, onClose, onDone }: SettleRunsProps) {
  const [settled, setSettled] = useState<number | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const title = verb === 'replay' ? 'Replay' : 'Drop';
  const start = (): void =>
    void submit(async () => {
      const chosen = run === undefined ? path : below(path, '/{run}', { run });
      const answer = await (verb === 'replay'
        ? call('POST', below(chosen, '/replay', {}))
        : call('DELETE', chosen));
      setSettled('replayed' in answer ? answer.replayed : answer.dropped);
    }).then(onDone);
  return (
    <Ask title={title} onClose={onClose}>
      <p>
        {run === undefined ? 'All of this action' : `Run ${run}`}. {sentences[verb]}
      </p>
      {isBusy && <progress aria-label={title} />}
      {settled !== undefined && (
        <p role="status">
          {settled.toLocaleString('en')} {verb === 'replay' ? 'replayed' : 'dropped'}.
        </p>
      )}
      {error && <ErrorBanner error={error} />}
      <div class="inline">
        {settled === undefined && (
          <button
            type="button"
            class={`button ${verb === 'drop' ? 'is-bad' : 'is-main'}`}
            disabled={isBusy}
            onClick={start}
          >
            {title}
          </button>
        )}
        <button type="button" class="button" onClick={onClose}>
          {settled === undefined ? 'Cancel' : 'Close'}
        </button>
      </div>
    </Ask>
  );
}
