import { useState } from 'preact/hooks';
import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import { targetText } from '../../../contract/columns/mail.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Head, Section } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { go, href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { spanText } from '../../server/clock.ts';
import { isBroadcastEnded, useBroadcast } from '../../server/followed-broadcast.ts';
import type { Resource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { BroadcastMark } from './broadcast-state.tsx';
import { Outcomes } from './outcomes.tsx';
import { doneOf, isRunning, usePace } from './progress.ts';
import { BroadcastRefusalList, type OfBroadcastProps } from './refusals.tsx';
import { Turns } from './turns.tsx';

/** One broadcast: how far and how fast it is, whom it did not reach and why; pause, resume, cancel. */
export function BroadcastScreen({ fleetId, broadcastId }: { fleetId: string; broadcastId: string }) {
  const path = pathTo('/fleets/{fleet_id}/broadcasts/{broadcast_id}', {
    fleet_id: fleetId,
    broadcast_id: broadcastId,
  });
  const broadcast = useBroadcast(path);
  const isFollowed = broadcast.value === undefined || !isBroadcastEnded(broadcast.value);
  return (
    <>
      <BroadcastHead fleetId={fleetId} path={path} resource={broadcast} />
      <div class="body">
        <Loaded resource={broadcast}>
          {(document) => (
            <>
              {document.state === 'held' && (
                <Banner kind="warn">
                  The server is held: the broadcast goes on once it is released, on the screen Server.
                </Banner>
              )}
              <Pace broadcast={document} readAtMs={broadcast.readAtMs} />
              <div class="columns">
                <div>
                  <Outcomes fleetId={fleetId} path={path} broadcast={document} />
                </div>
                <div>
                  <BroadcastRefusalList fleetId={fleetId} path={path} broadcast={document} />
                  <BroadcastFacts broadcast={document} />
                </div>
              </div>
            </>
          )}
        </Loaded>
      </div>
      <Commands
        command={['broadcast', 'show', broadcastId, '--fleet', fleetId, ...(isFollowed ? ['--follow'] : [])]}
        request={{ path }}
      />
    </>
  );
}

interface BroadcastHeadProps extends Pick<OfBroadcastProps, 'fleetId' | 'path'> {
  resource: Resource<BroadcastDocument>;
}

function BroadcastHead({ fleetId, path, resource }: BroadcastHeadProps) {
  const [asked, setAsked] = useState<'cancel' | 'delete' | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const { value, refresh } = resource;
  const change = (verb: 'pause' | 'resume'): void =>
    void submit(() => call('POST', below(path, `/${verb}`, {}))).then(refresh);
  const verb =
    value === undefined || value.ended_at !== null ? undefined : isRunning(value) ? 'pause' : 'resume';
  useKeys({ r: refresh, p: () => verb !== undefined && change(verb) });
  const busy = isBusy ? 'On its way' : undefined;
  return (
    <>
      <Head
        title={value?.name ?? 'Broadcast'}
        beside={value && <BroadcastMark broadcast={value} />}
        // A broadcast that has ended does not change: it is not read again.
        {...(value?.ended_at === null && { read: resource })}
        tools={
          <>
            <a class="button is-plain" href={href([fleetId, 'broadcasts'])}>
              All broadcasts
            </a>
            {verb !== undefined && (
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
            {value !== undefined && value.ended_at !== null && (
              <Act scope="mail" kind="bad" onClick={() => setAsked('delete')}>
                Delete
              </Act>
            )}
          </>
        }
      />
      {error && <ErrorBanner error={error} />}
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
          onDone={() => go(href([fleetId, 'broadcasts']))}
        >
          What is known of it is removed, its refusals included. No mail is touched.
        </Confirm>
      )}
    </>
  );
}

function Pace({ broadcast, readAtMs }: { broadcast: BroadcastDocument; readAtMs: number | undefined }) {
  const { devices, queued, refused, created_at, ended_at } = broadcast;
  const { perSecond, secondsLeft } = usePace(broadcast, readAtMs);
  const done = doneOf(broadcast);
  const tookMs = ended_at === null ? undefined : Date.parse(ended_at) - Date.parse(created_at);
  const rate = tookMs === undefined ? perSecond : (done * 1_000) / Math.max(tookMs, 1);
  const count = (one: number): string =>
    one.toLocaleString('en', { maximumFractionDigits: one < 10 ? 1 : 0 });
  const figures = [
    ['Queued', count(queued)],
    ['Not queued', count(refused)],
    ['Left', devices === null ? '–' : count(devices - done)],
    ['Rate', rate === undefined ? '–' : `${count(rate)}/s`],
    tookMs === undefined
      ? ['Time left', isRunning(broadcast) && secondsLeft !== undefined ? spanText(secondsLeft * 1_000) : '–']
      : ['Took', tookMs < 1_000 ? '< 1 s' : spanText(tookMs)],
  ] as const;
  return (
    <div class="stack">
      <div class="figures">
        {figures.map(([name, figure]) => (
          <div key={name}>
            <span class="soft">{name}</span>
            <span class={`figure ${name === 'Not queued' && refused > 0 ? 'warn' : ''}`}>{figure}</span>
          </div>
        ))}
      </div>
      <Turns broadcast={broadcast} />
    </div>
  );
}

function BroadcastFacts({ broadcast }: { broadcast: BroadcastDocument }) {
  const { broadcast_id, payload_bytes, created_at, ended_at, deliver_at } = broadcast;
  const { ttl_seconds, mailbox_mails_max, requeues_max } = broadcast;
  const ofFleet = 'as the fleet has it';
  return (
    <Section title="Facts">
      <dl class="facts">
        <dt>To</dt>
        <dd>
          <Untrusted text={targetText(broadcast)} lengthMax={2_200} />
        </dd>
        <dt>Begun</dt>
        <dd>
          <Moment time={created_at} />
        </dd>
        {ended_at !== null && (
          <>
            <dt>Ended</dt>
            <dd>
              <Moment time={ended_at} />
            </dd>
          </>
        )}
        {deliver_at !== null && (
          <>
            <dt>Delivered</dt>
            <dd>
              <Moment time={deliver_at} />
            </dd>
          </>
        )}
        <dt>Payload</dt>
        <dd>{payload_bytes.toLocaleString('en')} B</dd>
        <dt>Time to live</dt>
        <dd>{ttl_seconds === null ? ofFleet : spanText(ttl_seconds * 1_000)}</dd>
        <dt>Mails at most</dt>
        <dd>{mailbox_mails_max?.toLocaleString('en') ?? ofFleet}</dd>
        <dt>Requeues</dt>
        <dd>{requeues_max?.toLocaleString('en') ?? ofFleet}</dd>
        <dt>Id</dt>
        <dd class="mono small">{broadcast_id}</dd>
      </dl>
    </Section>
  );
}
