import type { TrialDocument } from '../../../../contract/action-run.ts';
import { Act } from '../../../parts/act.tsx';
import { Banner } from '../../../parts/banner.tsx';
import { DeviceLink } from '../../../parts/device.tsx';
import { pluralText } from '../../../parts/plural-text.ts';
import { Untrusted, visible } from '../../../parts/untrusted.tsx';
import { writeExactly } from '../../../server/exact-json.ts';

export interface TrialOutcomeProps {
  fleetId: string;
  trial: TrialDocument;
  /** Leads to a line of the code. */
  onLine: (line: number, column: number) => void;
}

/** Rows of mails, keys and lines that are drawn; a run may make a thousand. */
const drawnMax = 100;

function milliseconds(value: number): string {
  return `${Number(value).toFixed(1)} ms`;
}

/** Shows what a run would have done: nothing of it was sent or stored. */
export function TrialOutcome({ fleetId, trial, onLine }: TrialOutcomeProps) {
  const { error, reason, mails, state, log, cpu_milliseconds, wall_milliseconds } = trial;
  const spent = `${milliseconds(cpu_milliseconds)} of CPU time, ${milliseconds(wall_milliseconds)} in all`;
  return (
    <div class="stack" role="status">
      {error !== null ? (
        <Failure error={error} onLine={onLine} />
      ) : reason !== null ? (
        <Banner kind="bad">
          The test failed.
          <pre class="small">{visible(reason, '\n')}</pre>
        </Banner>
      ) : (
        <Banner kind="good">It succeeded. Nothing was sent or stored.</Banner>
      )}
      <div>
        <h3>
          {mails.length === 0 ? 'It would send no mail' : `It would send ${pluralText(mails.length, 'mail')}`}
        </h3>
        <ul class="list">
          {mails.slice(0, drawnMax).map(({ device, name, payload, ttl_seconds, replace_key }, index) => (
            <li key={index} class="outcome-row">
              <DeviceLink fleetId={fleetId} id={device} />
              <span class="strong">{name}</span>
              <code class="small soft">{visible(writeExactly(payload, 2_000))}</code>
              {ttl_seconds !== null && <span class="hint">lives {ttl_seconds} s</span>}
              {replace_key !== null && <span class="hint">replaces what waits of {replace_key}</span>}
            </li>
          ))}
          {mails.length > drawnMax && <li class="hint">and {mails.length - drawnMax} further ones</li>}
        </ul>
      </div>
      {state.length > 0 && (
        <div>
          <h3>It would store</h3>
          <ul class="list">
            {state.slice(0, drawnMax).map(({ key, removed, value }) => (
              <li key={key} class="outcome-row">
                <code>
                  <Untrusted text={key} />
                </code>
                <code class="small soft">{removed ? 'removed' : visible(writeExactly(value, 2_000))}</code>
              </li>
            ))}
          </ul>
        </div>
      )}
      {log.length > 0 && (
        <div>
          <h3>It logged</h3>
          <ol class="log">
            {log.slice(0, drawnMax).map((line, index) => (
              <li key={index}>
                <code>{visible(line.slice(0, 4_000))}</code>
              </li>
            ))}
            {log.length > drawnMax && <li class="hint">and {log.length - drawnMax} further lines</li>}
          </ol>
        </div>
      )}
      <p class="hint">{spent}</p>
    </div>
  );
}

interface FailureProps {
  error: NonNullable<TrialDocument['error']>;
  onLine: TrialOutcomeProps['onLine'];
}

/** The error with its stack; its first frame leads into the code. */
function Failure({ error, onLine }: FailureProps) {
  const [, line, column] = /:(\d{1,7}):(\d{1,7})\)?$/m.exec(error.msg) ?? [];
  return (
    <Banner
      kind="bad"
      tools={
        line && column ? (
          <Act onClick={() => onLine(Number(line), Number(column))}>Line {line}</Act>
        ) : undefined
      }
    >
      It failed: {error.code.replaceAll('_', ' ')}
      <pre class="small">{visible(error.msg, '\n')}</pre>
    </Banner>
  );
}
