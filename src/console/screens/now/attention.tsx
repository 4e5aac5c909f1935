import { useEffect } from 'preact/hooks';
import type { AttentionDocument, AttentionItem } from '../../../contract/insight/attention.ts';
import { lettersToday } from '../../around/letters-today.ts';
import { Section } from '../../frame.tsx';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Icon } from '../../parts/icon.tsx';
import { ReadNote } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { exactSpanText } from '../../server/clock.ts';
import { useResource } from '../../server/resource.ts';

const everySeconds = 5;

/** Kinds that end in one of these have lost something, or stand still. */
const badKinds = /^(server|dead_letters|stuck_mailboxes)$|_(held|lost|dead_letters)$/;

/** Where the list behind an item is; undefined if only a command shows it. */
function targetOf(fleetId: string, { kind }: AttentionItem, stuckSeconds: number): string | undefined {
  if (kind === 'dead_letters') return href([fleetId, 'dead-letters'], { since: '1d' });
  if (kind !== 'stuck_mailboxes') return undefined;
  return href([fleetId, 'devices'], { q: `waiting>${exactSpanText(stuckSeconds)}` });
}

/** The command that shows what an item is about. */
function commandOf(fleetId: string, { kind, name }: AttentionItem): string | undefined {
  const noun = kind.split('_', 1)[0];
  if (name === null) return undefined;
  return `fleetpost ${noun} show ${name} --fleet ${fleetId}`;
}

/** What an operator of the fleet should look at, each a link to where it is. */
export function Attention({ fleetId }: { fleetId: string }) {
  const path = `/fleets/${fleetId}/attention`;
  const attention = useResource(
    path,
    (signal) => call<AttentionDocument>('GET', path, { signal }),
    everySeconds,
  );
  const letters = attention.value?.items.find(({ kind }) => kind === 'dead_letters')?.count ?? 0;
  useEffect(() => {
    lettersToday.value = letters;
  }, [letters]);
  return (
    <Section
      title="Needs attention"
      note={<ReadNote readAtMs={attention.readAtMs} failingSinceMs={attention.failingSinceMs} />}
    >
      <Loaded resource={attention}>
        {({ items, stuck_seconds }) =>
          items.length === 0 ? (
            <p class="empty">Nothing does.</p>
          ) : (
            <ul class="list">
              {items.map((item) => (
                <li key={item.kind + item.name}>
                  <Item fleetId={fleetId} item={item} stuckSeconds={stuck_seconds} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function Item(props: { fleetId: string; item: AttentionItem; stuckSeconds: number }) {
  const { fleetId, item, stuckSeconds } = props;
  const { kind, sentence } = item;
  const target = targetOf(fleetId, item, stuckSeconds);
  const command = commandOf(fleetId, item);
  const content = (
    <>
      <span class={`state ${badKinds.test(kind) ? 'is-bad' : 'is-warn'}`} />
      <span class="grow">
        <Untrusted text={sentence} lengthMax={500} />
      </span>
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
  return (
    <div class="row">
      {content}
      {command !== undefined && <CopyButton text={command} label={`Copy: ${command}`} />}
    </div>
  );
}
