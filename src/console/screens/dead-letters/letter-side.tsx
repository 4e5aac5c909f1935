import type { DeadLetterDocument } from '../../../contract/dead-letter.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Payload } from '../../parts/payload.tsx';
import { call } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';

export interface LetterSideProps {
  fleetId: string;
  letter: DeadLetterDocument;
  /** Letters that the buttons are for. */
  count: number;
  onReplay: () => void;
  onDrop: () => void;
}

/** One letter with its payload, and what can be done with it or with those that are selected. */
export function LetterSide({ fleetId, letter, count, onReplay, onDrop }: LetterSideProps) {
  const { device_id, mail_id, name, fetch_count, requeue_count, queued_at, reason, died_at } = letter;
  const path = pathTo('/fleets/{fleet_id}/dead-letters/{device_id}/{mail_id}', {
    fleet_id: fleetId,
    device_id,
    mail_id,
  });
  const payload = useResource(path, async (signal) => ({
    document: await call('GET', path, { signal }),
  }));
  const many = count > 1 ? ` ${count}` : '';
  return (
    <Section
      title={name}
      tools={
        <>
          <Act scope="mail" kind="bad" onClick={onDrop}>
            Drop{many} <kbd>d</kbd>
          </Act>
          <Act scope="mail" kind="main" onClick={onReplay}>
            Replay{many} <kbd>r</kbd>
          </Act>
        </>
      }
    >
      <dl class="facts below">
        <dt>Ended</dt>
        <dd>
          {reason.replaceAll('_', ' ')}, <Moment time={died_at} />
        </dd>
        <dt>Queued</dt>
        <dd>{queued_at === null ? 'never' : <Moment time={queued_at} />}</dd>
        <dt>Fetched</dt>
        <dd>{fetch_count}×</dd>
        <dt>Requeued</dt>
        <dd>{requeue_count}×</dd>
        <dt>Mail</dt>
        <dd>
          <a class="link mono small" href={href([fleetId, 'devices', device_id, 'mail', mail_id])}>
            {mail_id}
          </a>
        </dd>
      </dl>
      <Loaded resource={payload}>{({ document }) => <Payload value={document} />}</Loaded>
    </Section>
  );
}
