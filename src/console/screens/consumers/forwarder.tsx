import { useState } from 'preact/hooks';
import { destinationForm, destinationText, destinationTitle } from '../../../contract/destination-text.ts';
import type { ForwarderDocument, ForwarderTrialDocument } from '../../../contract/forwarder.ts';
import { below, type Path, pathTo } from '../../../contract/routes/path.ts';
import { Screen, Section } from '../../frame/frame.tsx';
import { Menu } from '../../frame/menu.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { Fact, Figures } from '../../parts/facts.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import type { CallError } from '../../server/call-error.ts';
import { call } from '../../server/client.ts';
import { spanText } from '../../server/clock.ts';
import { useDocument } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { DeleteReader } from './delete-reader.tsx';
import { ForwarderForm } from './forwarder-form.tsx';
import { ForwarderLastHour } from './forwarder-hour.tsx';
import { isFarBehind, PauseReader, ReaderState } from './reader.tsx';
import { RefusedRecords } from './refused-records.tsx';
import { RotateSigningSecret } from './rotate-signing-secret.tsx';

/** One forwarder: where it stands, why it fails, what its destination refused. */
export function ForwarderScreen({ fleetId, name }: { fleetId: string; name: string }) {
  const path = pathTo('/fleets/{fleet_id}/forwarders/{name}', { fleet_id: fleetId, name });
  const forwarder = useDocument(path, 10);
  useKeys({ r: forwarder.refresh });
  const { value, refresh } = forwarder;
  const [asked, setAsked] = useState<Asked | undefined>();
  const close = (): void => setAsked(undefined);
  const trial = useTrial(path, refresh);
  return (
    <Screen
      title={<Untrusted text={name} lengthMax={80} />}
      beside={value && <ReaderState state={value.state} refused={value.dead_letters} />}
      read={forwarder}
      tools={
        <>
          <a class="button is-plain" href={href([fleetId, 'consumers'])}>
            All forwarders
          </a>
          <Act
            scope="admin"
            onClick={trial.test}
            title="Sends one test event to the destination"
            unless={trial.isBusy ? 'On its way' : undefined}
          >
            Test
          </Act>
          {value && <ForwarderMenu forwarder={value} onAsk={setAsked} />}
          {value && <PauseReader path={path} reader={value} onDone={refresh} />}
        </>
      }
      commands={[{ command: ['forwarder', 'show', name, '--fleet', fleetId], request: { path } }]}
    >
      {value && asked && <Dialog {...{ fleetId, path, forwarder: value, asked, refresh }} onClose={close} />}
      <Loaded resource={forwarder}>
        {(document) => (
          <>
            <TrialResult trial={trial} />
            <LastError forwarder={document} />
            <ForwarderFigures forwarder={document} />
            <div class="columns">
              <div>
                <ForwarderLastHour path={path} />
                <RefusedRecords
                  fleetId={fleetId}
                  path={path}
                  count={document.dead_letters}
                  onChanged={forwarder.refresh}
                />
              </div>
              <div>
                <ForwarderFacts forwarder={document} />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Screen>
  );
}

type Asked = 'change' | 'secret' | 'deletion';

interface DialogProps {
  fleetId: string;
  path: Path<'/fleets/{fleet_id}/forwarders/{name}'>;
  forwarder: ForwarderDocument;
  asked: Asked;
  refresh: () => void;
  onClose: () => void;
}

/** Opens the dialog that was chosen in the menu. */
function Dialog({ fleetId, path, forwarder, asked, refresh, onClose }: DialogProps) {
  const { name, dead_letters } = forwarder;
  if (asked === 'change')
    return <ForwarderForm fleetId={fleetId} known={forwarder} onDone={refresh} onClose={onClose} />;
  if (asked === 'secret')
    return <RotateSigningSecret name={name} path={path} onDone={refresh} onClose={onClose} />;
  return (
    <DeleteReader fleetId={fleetId} what="forwarder" path={path} onClose={onClose}>
      <strong>{name}</strong> goes for good, with its place in the log
      {dead_letters > 0 && ` and its ${dead_letters.toLocaleString('en')} dead letters`}.
    </DeleteReader>
  );
}

function ForwarderMenu(props: { forwarder: ForwarderDocument; onAsk: (asked: Asked) => void }) {
  const { forwarder, onAsk } = props;
  const { isSigned } = destinationForm(forwarder.type);
  return (
    <Menu label="More to do with the forwarder">
      <Act scope="admin" onClick={() => onAsk('change')}>
        Change
      </Act>
      <Act
        scope="admin"
        onClick={() => onAsk('secret')}
        unless={isSigned ? undefined : 'What goes to it is not signed.'}
      >
        New signing secret
      </Act>
      <Act scope="admin" kind="bad" onClick={() => onAsk('deletion')}>
        Delete
      </Act>
    </Menu>
  );
}

interface Trial {
  result: ForwarderTrialDocument | undefined;
  error: CallError | undefined;
  isBusy: boolean;
  test: () => void;
}

/** Sends a test event when it is asked to; the figures are read again afterwards. */
function useTrial(path: Path<'/fleets/{fleet_id}/forwarders/{name}'>, onDone: () => void): Trial {
  const [result, setResult] = useState<ForwarderTrialDocument | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const test = (): void => {
    setResult(undefined);
    void submit(async () => setResult(await call('POST', below(path, '/test', {})))).then(onDone);
  };
  return { result, error, isBusy, test };
}

const trialSentences = {
  delivered: 'The destination took the test event',
  refused: 'The destination refused the test event',
  failed: 'The test event did not arrive',
} as const satisfies Record<ForwarderTrialDocument['result'], string>;

/** Shows the outcome of the test event. */
function TrialResult({ trial: { result, error } }: { trial: Trial }) {
  if (error) return <ErrorBanner error={error} />;
  if (result === undefined) return null;
  return (
    <Banner kind={result.result === 'delivered' ? 'good' : 'warn'}>
      {trialSentences[result.result]}, after {result.milliseconds.toLocaleString('en')} ms
      {result.msg === null ? '.' : ': '}
      <Untrusted text={result.msg ?? ''} lengthMax={500} />
    </Banner>
  );
}

function LastError({ forwarder }: { forwarder: ForwarderDocument }) {
  const { last_error, next_attempt_at, state } = forwarder;
  if (state === 'dead_letters_full') {
    return (
      <Banner kind="bad">
        It delivers nothing: it has as many dead letters as it may have. Replay or drop some.
      </Banner>
    );
  }
  if (last_error === null || last_error.recovered_at !== null) return null;
  return (
    <Banner kind="bad">
      <Untrusted text={last_error.msg} lengthMax={1_000} /> That was <Moment time={last_error.at} />
      {next_attempt_at !== null && (
        <>
          ; the next attempt is <Moment time={next_attempt_at} />
        </>
      )}
      .
    </Banner>
  );
}

function ForwarderFigures({ forwarder }: { forwarder: ForwarderDocument }) {
  const { behind, seconds_behind, lost, dead_letters, delivered, failed } = forwarder;
  const waited = seconds_behind < 1 ? '0 s' : spanText(seconds_behind * 1_000);
  const count = (one: number): string => one.toLocaleString('en');
  return (
    <Figures
      figures={[
        [
          'Behind',
          waited,
          isFarBehind(forwarder) ? 'warn' : '',
          `${count(behind)} ${behind === 1 ? 'record' : 'records'}`,
        ],
        ['Lost', count(lost), lost > 0 ? 'bad' : '', 'removed by retention'],
        ['Dead letters', count(dead_letters), dead_letters > 0 ? 'bad' : '', 'refused records'],
        ['Delivered', count(delivered), '', 'since the start'],
        ['Failed', count(failed), '', 'since the start, retried'],
      ]}
    />
  );
}

function ForwarderFacts({ forwarder }: { forwarder: ForwarderDocument }) {
  const { filter, headers, credentials, tls, created_at, last_delivered_at, last_error } = forwarder;
  const { batch_records_max, linger_milliseconds, timeout_seconds } = forwarder;
  const filters = [...(filter.kinds ?? []), ...(filter.schemas ?? [])].join(', ');
  const { isSigned } = destinationForm(forwarder.type);
  const secrets = [
    ...(isSigned && forwarder.secret_since === null ? ['signing secret'] : []),
    ...headers.map((header) => `header ${header}`),
    ...(credentials === null ? [] : [credentials]),
    ...tls,
  ].join(', ');
  const facts = [
    [destinationTitle(forwarder), destinationText(forwarder)],
    ['Records', filters || 'all'],
    [
      'Batches',
      `up to ${batch_records_max} records${linger_milliseconds > 0 ? `, at least ${linger_milliseconds} ms apart` : ''}`,
    ],
    ['Timeout', `${timeout_seconds} s`],
    ['Secrets', secrets || 'none'],
  ] as const;
  return (
    <Section title="Facts">
      <dl class="facts">
        {facts.map(([name, text]) => (
          <Fact key={name} name={name}>
            <Untrusted text={text} lengthMax={2_000} />
          </Fact>
        ))}
        {forwarder.secret_since !== null && (
          <Fact name="Signing secret">
            since <Moment time={forwarder.secret_since} />
            {forwarder.old_secret_until !== null && (
              <>
                ; the old one signs too, and ends <Moment time={forwarder.old_secret_until} />
              </>
            )}
          </Fact>
        )}
        <Fact name="Delivered">
          {last_delivered_at === null ? 'nothing yet' : <Moment time={last_delivered_at} />}
        </Fact>
        {last_error !== null && last_error.recovered_at !== null && (
          <Fact name="Last error">
            <Untrusted text={last_error.msg} lengthMax={500} /> It was <Moment time={last_error.at} />, and
            works again since <Moment time={last_error.recovered_at} />.
          </Fact>
        )}
        <Fact name="Created">
          <Moment time={created_at} />
        </Fact>
      </dl>
    </Section>
  );
}
