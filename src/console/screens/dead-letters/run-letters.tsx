import { useState } from 'preact/hooks';
import type { DeadRunDocument } from '../../../contract/action-run.ts';
import { deadRunColumns } from '../../../contract/columns/action.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { RowButton } from '../../lists/table.tsx';
import { beginDraft, draftsMax } from '../../page/drafts.ts';
import { go, href, search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Moment } from '../../parts/moment.tsx';
import { indentedJson, Payload } from '../../parts/payload.tsx';
import { Untrusted, visible } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useDocument } from '../../server/resource.ts';
import { type Chosen, LetterList, type LetterSideProps, type Verb, verbs } from './letter-list.tsx';

const pageLetters = 100;

/** Runs of an action that failed for good: looked at with their records, replayed or dropped, one or all. */
export function RunLettersScreen({ fleetId, name }: { fleetId: string; name: string }) {
  const after = search.value.get('after') ?? '';
  const path = pathTo('/fleets/{fleet_id}/actions/{name}/dead-letters', { fleet_id: fleetId, name });
  const list = useDocument(path, undefined, { after, limit: pageLetters });
  return (
    <LetterList
      commands={[
        {
          command: ['action', 'dead-letters', name, '--fleet', fleetId],
          request: { path, query: { after } },
        },
      ]}
      title={`Dead letters of ${name}`}
      beside={
        <a class="link small" href={href([fleetId, 'actions', name])}>
          the action
        </a>
      }
      resource={list}
      scope="admin"
      empty={
        <>
          No run of this action has failed for good. Those of mail are under{' '}
          <a href={href([fleetId, 'dead-letters'])}>Dead letters</a>.
        </>
      }
      keyOf={({ run }) => String(run)}
      timeOf={({ failed_at }) => failed_at}
      labelOf={({ run }) => `Run ${run}`}
      aimOf={(verb, { run }) => `${verbs[verb]} run ${run}`}
      table={(cursor, onCursor) => ({
        columns: deadRunColumns,
        first: 'error',
        cells: {
          error: ({ error }, at) => (
            <>
              <RowButton isCurrent={at === cursor} onClick={() => onCursor(at)}>
                {error.code.replaceAll('_', ' ')}
              </RowButton>{' '}
              <span class="soft small">
                <Untrusted text={error.msg.split('\n', 1)[0] ?? ''} lengthMax={120} />
              </span>
            </>
          ),
          device: ({ device }) => <DeviceLink fleetId={fleetId} id={device} />,
        },
      })}
      side={(letter, tools) => <RunLetterSide fleetId={fleetId} name={name} letter={letter} tools={tools} />}
      question={questionOf}
      settle={async (verb, letters, signal, onProgress) => {
        const run = letters?.[0]?.run;
        const chosen = run === undefined ? path : below(path, '/{run}', { run });
        const answer = await (verb === 'replay'
          ? call('POST', below(chosen, '/replay', {}), { signal })
          : call('DELETE', chosen, { signal }));
        onProgress({ ...answer });
      }}
    />
  );
}

function questionOf(verb: Verb, letters: Chosen<DeadRunDocument>): string {
  const [letter] = letters ?? [];
  const which = letter === undefined ? 'All of this action' : `Run ${letter.run}`;
  return verb === 'replay'
    ? `${which}. Each has all its attempts again, with the version that is deployed now.`
    : `${which}. They are removed for good, with their records.`;
}

/** One failed run with the record it was for; it can be tried again where the action is written. */
function RunLetterSide(props: LetterSideProps<DeadRunDocument> & { name: string }) {
  const { fleetId, name, letter, tools } = props;
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
    <Section title={`Run ${run}`} tools={tools}>
      <dl class="facts below">
        <Fact name="Failed">
          <Moment time={failed_at} />, after {attempts} {attempts === 1 ? 'attempt' : 'attempts'}
        </Fact>
        <Fact name="Last one">
          <a class="link" href={href([fleetId, 'actions', name], { tab: 'runs', run: String(run) })}>
            run {run}
          </a>
        </Fact>
        <Fact name="Record">
          {kind} {schema} of <DeviceLink fleetId={fleetId} id={device} />, <Moment time={stored_at} />
        </Fact>
        {refused.length > 0 && (
          <Fact name="Refused mail">
            <RefusedMails refused={refused} />
          </Fact>
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
              <Act onClick={() => write(payload)}>Try it where the action is written</Act>
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
    <>
      {refused.slice(0, 20).map((mail) => (
        <div key={mail.device + mail.name}>
          {mail.name} to <code>{mail.device}</code>: {mail.reason.replaceAll('_', ' ')}
        </div>
      ))}
      {refused.length > 20 && `and ${refused.length - 20} further ones`}
    </>
  );
}
