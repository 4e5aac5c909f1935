import { useState } from 'preact/hooks';
import type { AuditEntryDocument } from '../../../contract/access/audit.ts';
import { auditColumns, factsText, requestText } from '../../../contract/columns/access.ts';
import { auditWords } from '../../../contract/columns/audit-words.ts';
import { ListTable } from '../../lists/table.tsx';
import { href, search } from '../../page/router.ts';
import { Fact } from '../../parts/facts.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { exactText } from '../../server/clock.ts';

/** A page of the audit log; a click on an entry shows all of it. */
export function AuditTable({ fleetId, items }: { fleetId: string; items: readonly AuditEntryDocument[] }) {
  const [opened, setOpened] = useState<readonly number[]>([]);
  const toggle = (entry: number): void =>
    setOpened(opened.includes(entry) ? opened.filter((one) => one !== entry) : [...opened, entry]);
  return (
    <ListTable
      class="audit"
      columns={auditColumns}
      items={items}
      keyOf={({ entry }) => entry}
      cells={{
        time: ({ time }) => (
          <span class="soft">
            <Moment time={time} />
          </span>
        ),
        about: (entry) => (
          <span class="soft small">
            <Untrusted
              // Its id says nothing that one reads; all of the entry is a click away.
              text={factsText(entry, ['fleet_id', 'mail_id', ...(auditWords(entry)?.said ?? [])])}
              lengthMax={200}
            />
          </span>
        ),
        by: (entry) => <Actor fleetId={fleetId} entry={entry} />,
        what: (item) => (
          <button
            type="button"
            class="cell"
            aria-expanded={opened.includes(item.entry)}
            onClick={() => toggle(item.entry)}
          >
            <Untrusted text={auditWords(item)?.sentence ?? requestText(item)} lengthMax={120} />
          </button>
        ),
        status: ({ status, error }) => (
          <span class={status !== null && status >= 400 ? 'bad' : 'soft'} title={error ?? undefined}>
            {status ?? 'open'}
          </span>
        ),
      }}
      more={(entry) => opened.includes(entry.entry) && <EntryFacts entry={entry} />}
    />
  );
}

/** Who it was; a click leaves the entries of that one. */
function Actor({ fleetId, entry: { by } }: { fleetId: string; entry: AuditEntryDocument }) {
  const id = by.kind === 'bootstrap' ? 'bootstrap' : by.id;
  const name = <Untrusted text={by.name || by.kind.replaceAll('_', ' ')} lengthMax={60} />;
  if (id === null) return name;
  const { after: _, ...others } = Object.fromEntries(search.value);
  return (
    <a href={href([fleetId, 'access', 'audit'], { ...others, token: id })} title={`Only by ${id}`}>
      {name}
    </a>
  );
}

function EntryFacts({ entry }: { entry: AuditEntryDocument }) {
  const { by, method, route, about, error, address, forwarded_for, request_id, omitted, book, time } = entry;
  const facts: readonly (readonly [string, string | null])[] = [
    ['Time', exactText(time)],
    ['Request', `${method} ${route}`],
    ...Object.entries(about).map(([key, value]) => [key, String(value)] as const),
    ['By', [by.kind, by.name, by.id].filter(Boolean).join(', ')],
    ['From', [address, forwarded_for && `says: ${forwarded_for}`].filter(Boolean).join(', ') || null],
    ['Error', error],
    ['Request id', request_id],
    ['Book', book],
    ['Without entry', omitted > 0 ? `${omitted} refused requests before this one` : null],
  ];
  return (
    <dl class="facts below">
      {facts.map(
        ([name, text]) =>
          text !== null && (
            <Fact key={name} name={<Untrusted text={name} lengthMax={40} />}>
              <Untrusted text={text} lengthMax={1_000} />
            </Fact>
          ),
      )}
    </dl>
  );
}
