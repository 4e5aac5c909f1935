import { useEffect, useState } from 'preact/hooks';
import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import type { SentMailDocument } from '../../../contract/mail.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Drawer } from '../../forms/dialogs.tsx';
import { path } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { type Draft, draftPayload, emptyDraft, problemOf, settingsOf } from './draft.ts';
import { newIdempotencyKey } from './idempotency-key.ts';
import { MailForm } from './mail-form.tsx';
import { type Recipient, recipientText, sendTo } from './send-to.ts';
import { BroadcastSent, MailSent } from './sent.tsx';

type Sent = { mail: SentMailDocument; deviceId: string } | { broadcast: BroadcastDocument };

/** The request that sends a draft; the payload is text, for it is delivered as it was typed. */
function requestOf(fleetId: string, recipient: Recipient, draft: Draft) {
  const payload = draftPayload(draft) ?? '{}';
  const settings = settingsOf(draft);
  if ('deviceId' in recipient) {
    const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail/{name}', {
      fleet_id: fleetId,
      device_id: draft.deviceId,
      name: draft.name,
    });
    return { method: 'POST' as const, path, query: settings, body: payload };
  }
  const front = JSON.stringify({ name: draft.name, to: recipient, ...settings });
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
  const { ttl_seconds, deliver_at } = settingsOf(draft);
  const to =
    'deviceId' in recipient
      ? ['--device', draft.deviceId]
      : 'devices' in recipient
        ? recipient.devices.flatMap((id) => ['--device', id])
        : 'tag' in recipient
          ? ['--tag', recipient.tag]
          : ['--all'];
  return [
    ...['mail', 'deviceId' in recipient ? 'send' : 'broadcast', '--fleet', fleetId, ...to],
    ...['--name', draft.name || 'NAME', '--payload', payload],
    ...(ttl_seconds === undefined ? [] : ['--ttl-seconds', String(ttl_seconds)]),
    ...(deliver_at === undefined ? [] : ['--deliver-at', deliver_at]),
  ];
}

/** Writes a mail to one device or to many, and then shows what becomes of it. */
export function SendDrawer({ fleetId, recipient }: { fleetId: string; recipient: Recipient }) {
  const [draft, setDraft] = useState<Draft>(() => emptyDraft(recipient));
  const [sent, setSent] = useState<Sent | undefined>();
  // One key for one mail: sent again after an answer that was lost, it is queued once.
  const [key, setKey] = useState(newIdempotencyKey);
  const { error, isBusy, submit } = useSubmit();
  const problem = problemOf(draft, recipient);
  const change = (changed: Partial<Draft>): void => {
    setDraft((before) => ({ ...before, ...changed }));
    setKey(newIdempotencyKey());
  };
  const send = (): void => {
    if (problem !== undefined) return;
    void submit(async () => {
      const { method, path, ...rest } = requestOf(fleetId, recipient, draft);
      const answer = await call(method, path, { ...rest, headers: { 'Idempotency-Key': key } });
      setSent('mail_id' in answer ? { mail: answer, deviceId: draft.deviceId } : { broadcast: answer });
    });
  };
  const close = (): void => {
    sendTo.value = undefined;
  };
  if (sent !== undefined) {
    return (
      <SentDrawer
        fleetId={fleetId}
        sent={sent}
        onClose={close}
        onAgain={() => {
          setSent(undefined);
          setKey(newIdempotencyKey());
        }}
      />
    );
  }
  return (
    <Drawer
      title={'deviceId' in recipient ? 'Send mail' : `Send mail to ${recipientText(recipient)}`}
      onClose={close}
      foot={<SendButton problem={problem} isBusy={isBusy} onClick={send} />}
    >
      <MailForm
        fleetId={fleetId}
        draft={draft}
        isToDevice={'deviceId' in recipient}
        errors={error?.errors ?? []}
        onChange={change}
        onSend={send}
      />
      {error && <ErrorBanner error={error} />}
      <Commands
        command={commandOf(fleetId, recipient, draft)}
        request={requestOf(fleetId, recipient, draft)}
      />
    </Drawer>
  );
}

function SendButton(props: { problem: string | undefined; isBusy: boolean; onClick: () => void }) {
  const { problem, isBusy, onClick } = props;
  return (
    <>
      <button
        type="button"
        class="button is-main"
        aria-disabled={problem !== undefined || isBusy}
        onClick={onClick}
      >
        Send <kbd>Ctrl ⏎</kbd>
      </button>
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
