import type {
  LogLineDocument,
  RunDocument,
  RunMailDocument,
  ShownRunDocument,
} from '../../../contract/action-run.ts';
import { below, type Path } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Payload } from '../../parts/payload.tsx';
import { Untrusted, visible } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { fineSpanText } from '../../server/clock.ts';
import { useDocument, useResource } from '../../server/resource.ts';
import { ends } from '../mail/mail-life.tsx';
import { pathOfAction } from './action-path.ts';
import { countText } from './health.ts';

const everySeconds = 3;
/** Pages of the log that are looked through for the lines of one run. */
const pagesMax = 5;
const logLines = 1_000;
const drawnLines = 200;

export const runMarks = { done: 'active', failed: 'warn', dead: 'bad' } as const;

export interface ActionRunProps {
  fleetId: string;
  name: string;
  run: string;
  /** The list without it. */
  back: string;
}

/** One run beside the list: the record that it was for, its mails with what became of them, and its log. */
export function ActionRun({ fleetId, name, run, back }: ActionRunProps) {
  const shown = useDocument(
    below(pathOfAction(fleetId, name), '/runs/{run}', { run }),
    everySeconds,
    undefined,
    // The run's mails are followed until their states are final.
    ({ sent }) => sent.every(({ state }) => !isOpen(state)),
  );
  return (
    <Section
      title={`Run ${run}`}
      tools={
        <a class="button is-plain is-icon" href={back} aria-label="Close the run" title="Close">
          <Icon name="close" />
        </a>
      }
    >
      <Loaded resource={shown}>
        {(document) => (
          <div class="stack">
            <RunFacts fleetId={fleetId} name={name} run={document} />
            <RunMails fleetId={fleetId} run={document} />
            <RunRecord run={document} />
            <RunLog fleetId={fleetId} name={name} run={run} />
          </div>
        )}
      </Loaded>
    </Section>
  );
}

function isOpen(state: RunMailDocument['state']): boolean {
  return state === 'sending' || state === 'queued' || state === 'delayed';
}

function RunFacts({ fleetId, name, run }: { fleetId: string; name: string; run: RunDocument }) {
  const { outcome, error, attempt, version, kind, device, stored_at, ended_at } = run;
  const mark = runMarks[outcome];
  const afterMs = Date.parse(ended_at) - Date.parse(stored_at);
  return (
    <>
      <dl class="facts">
        <Fact name="Outcome">
          <span class={`state is-${mark}`}>{outcome}</span>
          {outcome === 'failed' && <span class="hint"> tried again later</span>}
        </Fact>
        {outcome === 'dead' && (
          <Fact name="Kept as">
            <a class="link" href={href([fleetId, 'dead-letters'], { action: name })}>
              a dead letter
            </a>
          </Fact>
        )}
        <Fact name="Attempt">
          {attempt}, with version {version}
        </Fact>
        <Fact name="For">
          {kind} <Untrusted text={run.name} lengthMax={80} /> of <DeviceLink fleetId={fleetId} id={device} />,
          stored <Moment time={stored_at} />
        </Fact>
        <Fact name="Ended">
          <Moment time={ended_at} />, {fineSpanText(afterMs)} after the record was stored
        </Fact>
        <Fact name="Took">
          {Number(run.wall_milliseconds).toFixed(1)} ms, {Number(run.cpu_milliseconds).toFixed(1)} ms of CPU
        </Fact>
      </dl>
      {error !== null && (
        <pre class="small bad">
          {error.code}: {visible(error.msg, '\n')}
        </pre>
      )}
    </>
  );
}

/** Words for mails that have no receipt. */
const otherStates: Readonly<Record<string, string>> = {
  sending: 'on its way',
  queued: 'waits in the mailbox',
  delayed: 'delayed',
  fleet_mail_full: 'refused: the mail of the fleet is full',
  device_not_found: 'refused: no such device',
  not_stored: 'refused: it could not be stored',
};

function RunMails({ fleetId, run: { sent, mails } }: { fleetId: string; run: ShownRunDocument }) {
  return (
    <Section title={`Mails: ${countText(mails)}`}>
      {mails === 0 && <p class="empty">It sent none.</p>}
      <ul class="list">
        {sent.map((mail, index) => (
          <li key={index}>
            {mail.mail_id === null ? (
              <span class="row">
                <MailCells mail={mail} />
              </span>
            ) : (
              <a class="row" href={href([fleetId, 'devices', mail.device, 'mail', mail.mail_id])}>
                <MailCells mail={mail} />
              </a>
            )}
          </li>
        ))}
        {mails > sent.length && (
          <li class="hint">and {countText(mails - sent.length)} further ones, whose ids are not kept</li>
        )}
      </ul>
    </Section>
  );
}

function MailCells({ mail: { device, name, state } }: { mail: RunMailDocument }) {
  const mark = state === 'acked' || state === null ? 'acked' : isOpen(state) ? 'queued' : 'bad';
  const words = state === null ? 'its receipt has expired' : (otherStates[state] ?? ends[state] ?? state);
  return (
    <>
      <span class={`state ${state === null ? '' : `is-${mark}`} strong`}>
        <span class="cut mail-name">{name}</span>
      </span>
      <code class="small soft">{device}</code>
      <span class="end small">{words}</span>
    </>
  );
}

function RunRecord({ run: { record } }: { run: ShownRunDocument }) {
  return (
    <Section title="Record">
      {record === null ? (
        <p class="empty">
          The record is no longer in the log: what retention removes is not kept with the run.
        </p>
      ) : (
        <div class="below">
          <Payload value={record.payload} />
        </div>
      )}
    </Section>
  );
}

/** The lines of one run, oldest first. */
async function linesOfRun(
  path: Path<'/fleets/{fleet_id}/actions/{name}/logs'>,
  run: string,
  signal: AbortSignal,
): Promise<LogLineDocument[]> {
  let after: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const query = { run: Number(run), after, limit: logLines };
    const { items, next } = await call('GET', path, { query, signal });
    if (items.length > 0 || next === null) return items.reverse();
    after = next;
  }
  return [];
}

function RunLog({ fleetId, name, run }: { fleetId: string; name: string; run: string }) {
  const path = below(pathOfAction(fleetId, name), '/logs', {});
  const log = useResource(`${path} ${run}`, (signal) => linesOfRun(path, run, signal));
  return (
    <Section title="Log">
      <Loaded resource={log}>
        {(lines) =>
          lines.length === 0 ? (
            <p class="empty">It logged nothing, or its lines are no longer kept.</p>
          ) : (
            <ol class="log below" aria-label="Log lines of the run">
              {lines.slice(0, drawnLines).map(({ line, text }) => (
                <li key={line}>
                  <code>{visible(text.slice(0, 4_000))}</code>
                </li>
              ))}
              {lines.length > drawnLines && (
                <li class="hint">and {countText(lines.length - drawnLines)} further ones</li>
              )}
            </ol>
          )
        }
      </Loaded>
    </Section>
  );
}
