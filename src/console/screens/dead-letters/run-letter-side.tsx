import { useState } from 'preact/hooks';
import type { DeadRunDocument } from '../../../contract/action-run.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { beginDraft, draftsMax } from '../../page/drafts.ts';
import { go, href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Moment } from '../../parts/moment.tsx';
import { indentedJson, Payload } from '../../parts/payload.tsx';
import { visible } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';

export interface RunLetterSideProps {
  fleetId: string;
  name: string;
  letter: DeadRunDocument;
  onReplay: () => void;
  onDrop: () => void;
}

/** One failed run with the record it was for; it can be tried again where the action is written. */
export function RunLetterSide({ fleetId, name, letter, onReplay, onDrop }: RunLetterSideProps) {
  const { run, device, kind, name: schema, stored_at, failed_at, attempts, error, refused } = letter;
  const [wrong, setWrong] = useState(false);
  const shown = useDocument(
    pathTo('/fleets/{fleet_id}/actions/{name}/dead-letters/{run}', { fleet_id: fleetId, name, run }),
  );
  const write = (payload: unknown): void => {
    const record = { device, on: `${kind}:${schema}`, payload: indentedJson(payload) };
    if (beginDraft(`${fleetId}/action/${name}#record`, record)) go(href([fleetId, 'actions', name]));
    else setWrong(true);
  };
  return (
    <Section
      title={`Run ${run}`}
      tools={
        <>
          <Act scope="admin" kind="bad" onClick={onDrop}>
            Drop <kbd>d</kbd>
          </Act>
          <Act scope="admin" kind="main" onClick={onReplay}>
            Replay <kbd>r</kbd>
          </Act>
        </>
      }
    >
      <dl class="facts below">
        <dt>Failed</dt>
        <dd>
          <Moment time={failed_at} />, after {attempts} {attempts === 1 ? 'attempt' : 'attempts'}
        </dd>
        <dt>Last one</dt>
        <dd>
          <a class="link" href={href([fleetId, 'actions', name], { tab: 'runs', run: String(run) })}>
            run {run}
          </a>
        </dd>
        <dt>Record</dt>
        <dd>
          {kind} {schema} of <DeviceLink fleetId={fleetId} id={device} />, <Moment time={stored_at} />
        </dd>
        {refused.length > 0 && (
          <>
            <dt>Refused mail</dt>
            <RefusedMails refused={refused} />
          </>
        )}
      </dl>
      <pre class="small bad">
        {error.code}: {visible(error.msg, '\n')}
      </pre>
      <Loaded resource={shown}>
        {({ payload }) => (
          <div class="stack">
            <Payload value={payload} />
            <div>
              <button type="button" class="button" onClick={() => write(payload)}>
                Try it where the action is written
              </button>
            </div>
            {wrong && <p class="wrong">{draftsMax} drafts are kept in this tab: discard one first.</p>}
          </div>
        )}
      </Loaded>
    </Section>
  );
}

function RefusedMails({ refused }: Pick<DeadRunDocument, 'refused'>) {
  return (
    <dd>
      {refused.slice(0, 20).map((mail) => (
        <div key={mail.device + mail.name}>
          {mail.name} to <code>{mail.device}</code>: {mail.reason.replaceAll('_', ' ')}
        </div>
      ))}
      {refused.length > 20 && `and ${refused.length - 20} further ones`}
    </dd>
  );
}
