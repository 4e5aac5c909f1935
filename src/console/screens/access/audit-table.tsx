import { useState } from 'preact/hooks';
import type { AuditEntryDocument } from '../../../contract/access/audit.ts';
import { href, search } from '../../page/router.ts';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { exactText } from '../../server/clock.ts';

/** `POST devices/mail`: what was asked for, without what the details say. */
function routeText({ method, route }: AuditEntryDocument): string {
  const path = route.replace(/^\/admin\/v1\/(fleets\/:fleet_id\/?)?/, '').replaceAll(/\/?:\w+/g, '');
  return `${method} ${path || 'fleet'}`;
}

/** A page of the audit log; a click on one entry shows all of it. */
export function AuditTable({ fleetId, items }: { fleetId: string; items: readonly AuditEntryDocument[] }) {
  return (
    <div class="table">
      <table class="audit">
        <thead>
          <tr>
            <th>When</th>
            <th>Who</th>
            <th>What</th>
            <th class="less">About</th>
            <th class="number">Answer</th>
          </tr>
        </thead>
        <tbody>
          {items.map((entry) => (
            <EntryRow key={entry.entry} fleetId={fleetId} entry={entry} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function EntryRow({ fleetId, entry }: { fleetId: string; entry: AuditEntryDocument }) {
  const [isOpen, setOpen] = useState(false);
  const { time, about, status, error } = entry;
  const isRefused = status !== null && status >= 400;
  const facts = Object.entries(about)
    .filter(([key]) => key !== 'fleet_id')
    .map(([key, value]) => `${key}=${value}`);
  return (
    <>
      <tr class={isOpen ? 'has-more' : undefined}>
        <td class="soft">
          <Moment time={time} />
        </td>
        <td class="cut">
          <Actor fleetId={fleetId} entry={entry} />
        </td>
        <td class="cut">
          <button type="button" class="cell" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Untrusted text={routeText(entry)} lengthMax={80} />
          </button>
        </td>
        <td class="soft cut less small">
          <Untrusted text={facts.join('  ')} lengthMax={200} />
        </td>
        <td class={`number ${isRefused ? 'bad' : 'soft'}`} title={error ?? undefined}>
          {status ?? 'open'}
        </td>
      </tr>
      {isOpen && (
        <tr class="more">
          <td colSpan={5}>
            <EntryFacts entry={entry} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Who it was; a click leaves the entries of that one. */
function Actor({ fleetId, entry: { by } }: { fleetId: string; entry: AuditEntryDocument }) {
  const id = by.kind === 'bootstrap' ? 'bootstrap' : by.id;
  const name = <Untrusted text={by.name || by.kind.replaceAll('_', ' ')} lengthMax={60} />;
  if (id === null) return name;
  const { after: _, ...others } = Object.fromEntries(search.value);
  return <a href={href([fleetId, 'access', 'audit'], { ...others, token: id })}>{name}</a>;
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
            <>
              <dt key={name}>
                <Untrusted text={name} lengthMax={40} />
              </dt>
              <dd>
                <Untrusted text={text} lengthMax={1_000} />
              </dd>
            </>
          ),
      )}
    </dl>
  );
}
