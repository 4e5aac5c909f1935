import { useState } from 'preact/hooks';
import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import { targetText } from '../../../contract/columns/mail.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Screen, Section } from '../../frame/frame.tsx';
import { Menu } from '../../frame/menu.tsx';
import { useKeys } from '../../page/keys.ts';
import { goFromDeleted } from '../../page/recent.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Moment } from '../../parts/moment.tsx';
import { indentedJson, Payload } from '../../parts/payload.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { spanText } from '../../server/clock.ts';
import { isBroadcastEnded, useBroadcast } from '../../server/followed-broadcast.ts';
import { useResource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { Outcomes } from './outcomes.tsx';
import { BroadcastMark, doneOf, isRunning, usePace } from './progress.tsx';
import type { OfBroadcastProps } from './refusals.tsx';

/** One broadcast: how far and how fast it is, whom it did not reach and why; pause, resume, cancel. */
export function BroadcastScreen({ fleetId, broadcastId }: { fleetId: string; broadcastId: string }) {
  const path = pathTo('/fleets/{fleet_id}/broadcasts/{broadcast_id}', {
    fleet_id: fleetId,
    broadcast_id: broadcastId,
  });
  const broadcast = useBroadcast(path);
  const isFollowed = broadcast.value === undefined || !isBroadcastEnded(broadcast.value);
  const { value } = broadcast;
  return (
    <Screen
      title={value?.name ?? 'Broadcast'}
      name={value?.name}
      beside={
        value && (
          <>
            <span class="soft">broadcast</span>
            <BroadcastMark broadcast={value} />
          </>
        )
      }
      // A broadcast that has ended does not change: it is not read again.
      read={value?.ended_at === null ? broadcast : undefined}
      tools={
        <>
          <a class="button is-plain" href={href([fleetId, 'broadcasts'])}>
            All broadcasts
          </a>
          {value && (
            <BroadcastTools fleetId={fleetId} path={path} broadcast={value} refresh={broadcast.refresh} />
          )}
        </>
      }
      commands={[
        {
          command: [
            'broadcast',
            'show',
            broadcastId,
            '--fleet',
            fleetId,
            ...(isFollowed ? ['--follow'] : []),
          ],
          request: { path },
        },
      ]}
    >
      <Loaded resource={broadcast}>
        {(document) => (
          <>
            {document.state === 'held' && (
              <Banner kind="warn">
                The server is held: the broadcast goes on once it is released, on the screen Server.
              </Banner>
            )}
            <BroadcastBody fleetId={fleetId} path={path} broadcast={document} readAtMs={broadcast.readAtMs} />
          </>
        )}
      </Loaded>
    </Screen>
  );
}

/** What became of it, what it says, and its facts. */
function BroadcastBody(props: OfBroadcastProps & { readAtMs: number | undefined }) {
  const { fleetId, path, broadcast, readAtMs } = props;
  const payloadPath = below(path, '/payload', {});
  const payload = useResource(payloadPath, async (signal) => ({
    document: await call('GET', payloadPath, { signal }),
  }));
  const text = payload.value && indentedJson(payload.value.document);
  return (
    <div class="columns">
      <div>
        <Outcomes {...props} payload={text} />
      </div>
      <div>
        <Section title="Payload">
          <div class="below">
            <Loaded resource={payload}>{({ document }) => <Payload value={document} />}</Loaded>
          </div>
        </Section>
        <BroadcastFacts fleetId={fleetId} broadcast={broadcast} readAtMs={readAtMs} />
      </div>
    </div>
  );
}

/** Pauses, resumes, cancels or deletes a broadcast; what cannot be taken back asks first. */
function BroadcastTools(props: OfBroadcastProps & { refresh: () => void }) {
  const { fleetId, path, broadcast, refresh } = props;
  const [asked, setAsked] = useState<'cancel' | 'delete' | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const change = (verb: 'pause' | 'resume'): void =>
    void submit(() => call('POST', below(path, `/${verb}`, {}))).then(refresh);
  const verb = broadcast.ended_at !== null ? undefined : isRunning(broadcast) ? 'pause' : 'resume';
  useKeys({ r: refresh, p: () => verb !== undefined && change(verb) });
  const busy = isBusy ? 'On its way' : undefined;
  return (
    <>
      {error && <ErrorBanner error={error} />}
      {verb === undefined ? (
        <Menu label="More to do with the broadcast">
          <Act scope="mail" kind="bad" onClick={() => setAsked('delete')}>
            Delete
          </Act>
        </Menu>
      ) : (
        <>
          <Act scope="mail" kind="bad" onClick={() => setAsked('cancel')} unless={busy}>
            Cancel
          </Act>
          <Act scope="mail" kind="main" onClick={() => change(verb)} unless={busy}>
            <Icon name={verb === 'pause' ? 'pause' : 'play'} />
            {verb === 'pause' ? 'Pause' : 'Resume'} <kbd>p</kbd>
          </Act>
        </>
      )}
      {asked === 'cancel' && (
        <Confirm
          title="Cancel the broadcast"
          otherwise="Let it go on"
          work={() => call('POST', below(path, '/cancel', {}))}
          onClose={() => setAsked(undefined)}
          onDone={refresh}
        >
          It ends for good. Mail that was queued already stays in the mailboxes.
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title="Delete the broadcast"
          work={() => call('DELETE', path)}
          onClose={() => setAsked(undefined)}
          onDone={() => goFromDeleted(href([fleetId, 'broadcasts']))}
        >
          What is known of it is removed, its refusals included. No mail is touched.
        </Confirm>
      )}
    </>
  );
}

/** How far the fan-out is, and how fast. */
function PaceFacts({ broadcast, readAtMs }: FactsProps) {
  const { devices, queued, created_at, ended_at, pause_after } = broadcast;
  const { perSecond, secondsLeft } = usePace(broadcast, readAtMs);
  const done = doneOf(broadcast);
  const tookMs = ended_at === null ? undefined : Date.parse(ended_at) - Date.parse(created_at);
  const count = (one: number): string =>
    one.toLocaleString('en', { maximumFractionDigits: one < 10 ? 1 : 0 });
  return (
    <>
      <Fact name="Queued">
        {count(queued)}
        {devices !== null && ` of ${count(devices)}`}
        {devices !== null && ended_at === null && `, ${count(devices - done)} to come`}
      </Fact>
      {tookMs !== undefined ? (
        <Fact name="Took">{tookMs < 1_000 ? 'less than 1 s' : spanText(tookMs)}</Fact>
      ) : (
        <Fact name="Rate">
          {perSecond === undefined || !isRunning(broadcast) ? '–' : `${count(perSecond)}/s`}
          {isRunning(broadcast) && secondsLeft !== undefined && `, ${spanText(secondsLeft * 1_000)} left`}
        </Fact>
      )}
      {pause_after !== null && <Fact name="Pauses">after the first {count(pause_after)}</Fact>}
    </>
  );
}

interface FactsProps {
  broadcast: BroadcastDocument;
  readAtMs: number | undefined;
}

function BroadcastFacts({ fleetId, broadcast, readAtMs }: FactsProps & { fleetId: string }) {
  const { state, broadcast_id, payload_bytes, created_at, ended_at, deliver_at } = broadcast;
  const { ttl_seconds, mailbox_mails_max, requeues_max, replace_key } = broadcast;
  const limits = [
    ['Time to live', ttl_seconds === null ? undefined : spanText(ttl_seconds * 1_000)],
    ['Mails at most', mailbox_mails_max?.toLocaleString('en')],
    ['Requeues', requeues_max?.toLocaleString('en')],
  ] as const;
  const own = limits.filter(([, text]) => text !== undefined);
  return (
    <Section title="Facts">
      <dl class="facts">
        <Fact name="To">
          <Untrusted text={targetText(broadcast)} lengthMax={2_200} />
        </Fact>
        <PaceFacts broadcast={broadcast} readAtMs={readAtMs} />
        <Fact name="Begun">
          <Moment time={created_at} />
        </Fact>
        {state === 'cancelled' && ended_at !== null && (
          <Fact name="Cancelled">
            <Moment time={ended_at} />
          </Fact>
        )}
        {deliver_at !== null && (
          <Fact name="Delivered">
            <Moment time={deliver_at} />
          </Fact>
        )}
        <Fact name="Size">{payload_bytes.toLocaleString('en')} B</Fact>
        {own.map(([name, text]) => (
          <Fact key={name} name={name}>
            {text}
          </Fact>
        ))}
        {own.length < limits.length && (
          <Fact name="Limits">
            {own.length > 0 && 'else '}
            <a class="link" href={href([fleetId, 'fleet'])}>
              those of the fleet
            </a>
          </Fact>
        )}
        {replace_key !== null && <Fact name="Replaces">what waits of {replace_key}</Fact>}
        <Fact name="Id" class="mono small">
          {broadcast_id}
        </Fact>
      </dl>
    </Section>
  );
}
