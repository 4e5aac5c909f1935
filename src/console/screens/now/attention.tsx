import { useContext } from 'preact/hooks';
import type { AttentionDocument, AttentionItem } from '../../../contract/monitoring/attention.ts';
import { AttentionContext } from '../../frame/attention.ts';
import { Section } from '../../frame/frame.tsx';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Icon } from '../../parts/icon.tsx';
import { ReadNote } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { clockText, exactSpanText, serverNow } from '../../server/clock.ts';

/** Kinds that end in one of these have lost something, or stand still. */
const badKinds = /^(server|many_devices_silent|dead_letters|stuck_mailboxes)$|_(held|lost|dead_letters)$/;

/** Mail of devices that do not call waits for them, as it is meant to. */
const quietKinds = ['offline_mailboxes'];

type Spans = Pick<AttentionDocument, 'stuck_seconds' | 'active_seconds'>;

const hourMs = 3_600_000;

function toneOf(kinds: readonly string[]): string {
  if (kinds.some((kind) => badKinds.test(kind))) return 'is-bad';
  return kinds.every((kind) => quietKinds.includes(kind)) ? 'is-offline' : 'is-warn';
}

const tones = ['is-bad', 'is-warn', 'is-offline'];

/** Items by how bad they are; those that are as bad as the server has them. */
function worstFirst(items: readonly AttentionItem[]): AttentionItem[] {
  const rank = ({ kind, also }: AttentionItem): number => tones.indexOf(toneOf([kind, ...also]));
  return [...items].sort((a, b) => rank(a) - rank(b));
}

/** Address that shows an item; undefined: it is of the server, whose reasons say what to do. */
function targetOf(
  fleetId: string,
  { kind, name, device_id, since }: AttentionItem,
  { stuck_seconds, active_seconds }: Spans,
): string | undefined {
  if (device_id !== null) return href([fleetId, 'devices', device_id]);
  if (kind === 'dead_letters') return href([fleetId, 'dead-letters'], { since: '1d' });
  if (kind === 'stuck_mailboxes' || kind === 'offline_mailboxes') {
    const seen = `seen${kind === 'stuck_mailboxes' ? '<' : '>'}${exactSpanText(active_seconds)}`;
    return href([fleetId, 'devices'], { q: `waiting>${exactSpanText(stuck_seconds)} ${seen}` });
  }
  if (kind === 'devices_refused') return href([fleetId, 'devices'], { q: 'refused:any enabled:yes' });
  if (kind === 'devices_silent' || kind === 'many_devices_silent') {
    const isOfHour = since !== null && serverNow() - Date.parse(since) <= hourMs;
    return href([fleetId, 'devices'], { q: `silent:${isOfHour ? '1h' : '1d'}` });
  }
  if (name === null) return undefined;
  // Failed runs have a list of their own; a forwarder's are on its screen.
  if (kind === 'action_dead_letters') return href([fleetId, 'dead-letters'], { action: name });
  return href([fleetId, `${kind.split('_', 1)[0]}s`, name]);
}

/** Lists what an operator of the fleet should look at, each a link to where it is. */
export function Attention({ fleetId }: { fleetId: string }) {
  const attention = useContext(AttentionContext);
  if (attention === undefined) return null;
  return (
    <Section
      title="Needs attention"
      note={<ReadNote readAtMs={attention.readAtMs} failingSinceMs={attention.failingSinceMs} />}
    >
      <Loaded resource={attention}>
        {({ items, ...spans }) =>
          items.length === 0 ? (
            <p class="empty">Nothing needs attention.</p>
          ) : (
            <ul class="list">
              {worstFirst(items).map((item) => (
                <li key={`${item.kind} ${item.name} ${item.device_id}`}>
                  <Item fleetId={fleetId} item={item} spans={spans} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function Item(props: { fleetId: string; item: AttentionItem; spans: Spans }) {
  const { fleetId, item, spans } = props;
  const { kind, also, sentence, since } = item;
  const target = targetOf(fleetId, item, spans);
  const content = (
    <>
      <span class={`state ${toneOf([kind, ...also])}`} />
      <span class="grow">
        <Untrusted text={sentence} lengthMax={500} />
      </span>
      {since !== null && (
        <time class="soft small" dateTime={since}>
          since {clockText(since)}
        </time>
      )}
    </>
  );
  if (target !== undefined) {
    return (
      <a class="row" href={target}>
        {content}
        <Icon name="next" />
      </a>
    );
  }
  return <div class="row">{content}</div>;
}
