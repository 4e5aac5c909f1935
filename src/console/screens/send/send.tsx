import { useEffect, useMemo, useState } from 'preact/hooks';
import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import type { ReceiptDocument, SentMailDocument } from '../../../contract/mail.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Drawer } from '../../forms/dialogs.tsx';
import { type KeptDraft, useDraft } from '../../page/drafts.ts';
import { path } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { call } from '../../server/client.ts';
import type { Resource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { type DeviceCount, isWholeFleet, useDeviceCount } from '../devices/selection.ts';
import { askedFrom, BroadcastQuestion, Recipients, sendText } from './broadcast-question.tsx';
import { type Draft, draftPayload, emptyDraft, problemOf, settingsOf } from './draft.ts';
import { newIdempotencyKey } from './idempotency-key.ts';
import { MailForm } from './mail-form.tsx';
import { type Recipient, recipientText, sendTo } from './send-to.ts';
import { BroadcastSent, MailSent } from './sent.tsx';
import { recipientOf } from './written-recipient.ts';

type Sent = { mail: SentMailDocument; deviceId: string } | { broadcast: BroadcastDocument };

/** What an answer says was sent: never a receipt, which is for who waits for the settlement. */
function sentOf(answer: SentMailDocument | ReceiptDocument | BroadcastDocument, deviceId: string): Sent {
  return 'broadcast_id' in answer ? { broadcast: answer } : { mail: answer as SentMailDocument, deviceId };
}

/** The request that sends a draft; the payload is text, for it is delivered as it was typed. */
function requestOf(fleetId: string, recipient: Recipient, draft: Draft) {
  const payload = draftPayload(draft) ?? '{}';
  const settings = settingsOf(draft);
  if ('deviceId' in recipient) {
    const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail/{name}', {
      fleet_id: fleetId,
      device_id: recipient.deviceId,
      name: draft.name,
    });
    return { method: 'POST' as const, path, query: settings, body: payload };
  }
  const { pauseAfter } = draft;
  const to =
    'ids' in recipient
      ? { devices: recipient.ids }
      : isWholeFleet(recipient)
        ? { all: true }
        : recipient.filter;
  const rollout = pauseAfter === '' ? {} : { pause_after: Number(pauseAfter) };
  const front = JSON.stringify({ name: draft.name, to, ...settings, ...rollout });
  const body = `${front.slice(0, -1)},"payload":${payload}}`;
  return {
    method: 'POST' as const,
    path: pathTo('/fleets/{fleet_id}/broadcasts', { fleet_id: fleetId }),
    query: {},
    body,
  };
}

function commandOf(fleetId: string, recipient: Recipient, draft: Draft): string[] {
  const payload = draftPayload(draft) ?? '{}';
  const { ttl_seconds, deliver_at, replace_key } = settingsOf(draft);
  const to =
    'deviceId' in recipient
      ? ['--device', recipient.deviceId]
      : 'ids' in recipient
        ? ['--devices', 'FILE']
        : isWholeFleet(recipient)
          ? ['--all']
          : recipient.flags;
  return [
    ...['mail', 'deviceId' in recipient ? 'send' : 'broadcast', '--fleet', fleetId, ...to],
    ...['--name', draft.name || 'NAME', '--payload', payload],
    ...(ttl_seconds === undefined ? [] : ['--ttl-seconds', String(ttl_seconds)]),
    ...(deliver_at === undefined ? [] : ['--deliver-at', deliver_at]),
    ...(replace_key === undefined ? [] : ['--replace-key', replace_key]),
    ...(draft.pauseAfter === '' ? [] : ['--pause-after', draft.pauseAfter]),
  ];
}

/** Writes a mail to one device or to many, and then shows what becomes of it. */
export function SendDrawer({ fleetId, recipient }: { fleetId: string; recipient: Recipient }) {
  const draft = useDraft<Draft>(`${fleetId}/send/${draftName(recipient)}`, emptyDraft(recipient));
  const [sent, setSent] = useState<{ what: Sent; draft: Draft } | undefined>();
  const close = (): void => {
    sendTo.value = undefined;
  };
  return sent === undefined ? (
    <DraftDrawer
      fleetId={fleetId}
      recipient={recipient}
      kept={draft}
      onSent={(what) => {
        setSent({ what, draft: draft.value });
        draft.discard();
      }}
      onClose={close}
    />
  ) : (
    <SentDrawer
      fleetId={fleetId}
      sent={sent.what}
      onClose={close}
      onAgain={() => {
        draft.change(sent.draft);
        setSent(undefined);
      }}
    />
  );
}

/** What a draft is kept under: whom it is for, and the mail that it began as. */
function draftName(recipient: Recipient): string {
  const { mail } = recipient;
  const to =
    'deviceId' in recipient
      ? recipient.deviceId
      : 'ids' in recipient
        ? `${recipient.ids.length} ${recipient.ids[0]}`
        : `all ${recipient.text}`;
  return mail === undefined ? to : `${to} ${mail.name} ${mail.payload.length} ${mail.payload.slice(0, 200)}`;
}

interface DraftDrawerProps {
  fleetId: string;
  recipient: Recipient;
  kept: KeptDraft<Draft>;
  onSent: (sent: Sent) => void;
  onClose: () => void;
}

function DraftDrawer({ fleetId, recipient: asked, kept, onSent, onClose }: DraftDrawerProps) {
  const draft = kept.value;
  // One key for one mail: sent again after an answer that was lost, it is queued once.
  const [key, setKey] = useState(newIdempotencyKey);
  const [isAsked, setAsked] = useState(false);
  const { error, isBusy, submit } = useSubmit();
  const { recipient, selection, isToOpen, ...target } = useTarget(asked, draft.to);
  const counted = useDeviceCount(fleetId, selection);
  const count = counted.value;
  const problem = target.problem ?? problemOf(draft) ?? (selection && countProblem(counted));
  const change = (changed: Partial<Draft>): void => {
    kept.change(changed);
    setKey(newIdempotencyKey());
  };
  const send = (): void => {
    setAsked(false);
    void submit(async () => {
      const { method, path, ...rest } = requestOf(fleetId, recipient, draft);
      const answer = await call(method, path, { ...rest, headers: { 'Idempotency-Key': key } });
      onSent(sentOf(answer, draft.to.trim()));
    });
  };
  const ask = (): void => {
    if (problem !== undefined) return;
    if (count !== undefined && count.devices >= askedFrom) setAsked(true);
    else send();
  };
  const onPauseAfter = (devices: string): void => change({ pauseAfter: devices });
  return (
    <Drawer
      title={'deviceId' in asked ? 'Send mail' : `Send mail to ${recipientText(asked)}`}
      onClose={onClose}
      foot={
        <SendButton {...{ problem, isBusy, kept }} onClick={ask}>
          {sendText(count, draft.pauseAfter)}
        </SendButton>
      }
    >
      <MailForm
        fleetId={fleetId}
        draft={draft}
        isToOpen={isToOpen}
        recipients={selection && <Recipients {...{ count, pauseAfter: draft.pauseAfter, onPauseAfter }} />}
        errors={error?.errors ?? []}
        onChange={change}
        onSend={ask}
      />
      {counted.error && <ErrorBanner error={counted.error} onRetry={counted.refresh} />}
      {error && <ErrorBanner error={error} />}
      {isAsked && count && selection && (
        <BroadcastQuestion
          name={draft.name}
          whom={recipientText(selection)}
          count={count}
          pauseAfter={draft.pauseAfter}
          onSend={send}
          onClose={() => setAsked(false)}
        />
      )}
      <Commands
        command={commandOf(fleetId, recipient, draft)}
        request={requestOf(fleetId, recipient, draft)}
      />
    </Drawer>
  );
}

/** Whom the mail goes to: who was asked for, or whom the draft names; and why that is nobody yet. */
function useTarget(asked: Recipient, to: string) {
  const isToOpen = 'deviceId' in asked;
  // The spans in filters are times: the same until the text is another.
  const typed = useMemo(() => recipientOf(to), [to]);
  const recipient: Recipient = isToOpen ? typed.recipient : asked;
  const selection = 'deviceId' in recipient ? undefined : recipient;
  return { recipient, selection, isToOpen, problem: isToOpen ? typed.problem : undefined };
}

/** Why a broadcast whose devices are being counted cannot begin yet. */
function countProblem({ value, error }: Resource<DeviceCount>): string | undefined {
  if (value !== undefined) return value.devices === 0 ? 'No device fits.' : undefined;
  return error === undefined ? 'The devices are being counted.' : 'The devices could not be counted.';
}

interface SendButtonProps {
  problem: string | undefined;
  isBusy: boolean;
  onClick: () => void;
  kept: KeptDraft<Draft>;
  children: string;
}

function SendButton(props: SendButtonProps) {
  const { problem, isBusy, kept, onClick, children } = props;
  return (
    <>
      <button
        type="button"
        class="button is-main"
        aria-disabled={problem !== undefined || isBusy}
        onClick={onClick}
      >
        {children} <kbd>Ctrl ⏎</kbd>
      </button>
      {kept.isChanged && (
        <Act kind="plain" onClick={kept.discard} title="Until then it is kept in this tab">
          Discard
        </Act>
      )}
      {problem !== undefined && <span class="hint">{problem}</span>}
    </>
  );
}

interface SentDrawerProps {
  fleetId: string;
  sent: Sent;
  onClose: () => void;
  onAgain: () => void;
}

function SentDrawer({ fleetId, sent, onClose, onAgain }: SentDrawerProps) {
  // A link in it leads to what became of the mail: that screen is not to be read behind the drawer.
  const place = path.value.join('/');
  const [opened] = useState(place);
  useEffect(() => {
    if (place !== opened) onClose();
  }, [place]);
  const again = <Act onClick={onAgain}>Send another</Act>;
  return (
    <Drawer title="Sent" onClose={onClose} foot={again}>
      {'mail' in sent ? (
        <MailSent fleetId={fleetId} deviceId={sent.deviceId} mail={sent.mail} />
      ) : (
        <BroadcastSent fleetId={fleetId} broadcast={sent.broadcast} />
      )}
    </Drawer>
  );
}
