import { useContext } from 'preact/hooks';
import { deadLetterColumns } from '../../../contract/columns/mail.ts';
import type { DeadLetterDocument, LetterCountDocument, LetterFilter } from '../../../contract/dead-letter.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { AttentionContext } from '../../frame/attention.ts';
import { Section } from '../../frame/frame.tsx';
import { addressFilter, FilterSelect, FilterText, spans } from '../../lists/filters.tsx';
import { RowButton } from '../../lists/table.tsx';
import { href, search } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Payload } from '../../parts/payload.tsx';
import { call } from '../../server/client.ts';
import { parseSpan, serverNow } from '../../server/clock.ts';
import { useResource } from '../../server/resource.ts';
import { type Chosen, LetterList, type LetterSideProps, type Verb, verbs } from './letter-list.tsx';
import { settleLetters } from './settle-letters.ts';

const pageLetters = 100;
/** Seconds until the first page is read again, which says how many are new. */
const everySeconds = 15;
const reasons = [
  ['', 'all reasons'],
  ['rejected', 'rejected'],
  ['expired', 'expired'],
  ['over_requeued', 'requeued too often'],
  ['mailbox_full', 'mailbox full'],
] as const;

/** The filter of an address, as the API and the CLI take it. */
function filterOf(parameters: URLSearchParams): { filter: LetterFilter; flags: string[] } {
  const filter: Record<string, string> = {};
  const flags: string[] = [];
  const take = (
    parameter: string,
    key: string,
    flag: string,
    value = parameters.get(parameter) ?? '',
  ): void => {
    if (value === '') return;
    filter[key] = value;
    flags.push(flag, parameters.get(parameter) ?? '');
  };
  take('reason', 'reason', '--reason');
  take('name', 'name', '--name');
  take('device', 'device_id', '--device');
  const spanMs = parseSpan(parameters.get('since') ?? '');
  if (spanMs !== undefined) take('since', 'from', '--since', new Date(serverNow() - spanMs).toISOString());
  return { filter: filter as LetterFilter, flags };
}

/** Mail that failed for good: looked at with its payload, replayed or dropped, one or all that fit. */
export function DeadLettersScreen({ fleetId }: { fleetId: string }) {
  const { filter, flags } = filterOf(search.value);
  const path = pathTo('/fleets/{fleet_id}/dead-letters', { fleet_id: fleetId });
  const after = search.value.get('after') ?? '';
  const counted = { ...filter, reason: filter.reason && [filter.reason].flat() };
  const query = { ...counted, after };
  const list = useResource(
    `${path}?${search.value}`,
    (signal) => call('GET', path, { query: { ...query, limit: pageLetters }, signal }),
    after === '' ? everySeconds : undefined,
  );
  const countPath = below(path, ':count', {});
  // A span moves on: the address says whether it is another list.
  const count = useResource(`${countPath}?${search.value}`, (signal) =>
    call('GET', countPath, { query: counted, signal }),
  );
  const total = count.value && { letters: count.value.letters, isAll: count.value.is_all };
  const attention = useContext(AttentionContext);
  return (
    <LetterList
      title="Dead letters"
      commands={[
        { command: ['dead-letter', 'list', '--fleet', fleetId, ...flags], request: { path, query } },
      ]}
      filters={
        <>
          <LetterFilters fleetId={fleetId} />
          <OtherLetters fleetId={fleetId} />
          {count.value && <LetterGroups fleetId={fleetId} count={count.value} />}
        </>
      }
      resource={list}
      scope="mail"
      total={total}
      empty={
        search.value.size === 0
          ? 'No dead letter: every mail that ended was acknowledged or withdrawn.'
          : 'No dead letter fits.'
      }
      keyOf={({ device_id, mail_id }) => `${device_id}/${mail_id}`}
      timeOf={({ died_at }) => died_at}
      labelOf={({ name, device_id }) => `${name} of ${device_id}`}
      isSelectable
      pageOrder="what died last first; pages go by when the mail was sent"
      aimOf={(verb, { device_id }) => (verb === 'replay' ? `Replay to ${device_id}` : verbs[verb])}
      table={(cursor, onCursor) => ({
        columns: deadLetterColumns,
        cells: {
          name: ({ name }, at) => (
            <RowButton isCurrent={at === cursor} onClick={() => onCursor(at)}>
              {name}
            </RowButton>
          ),
          device_id: ({ device_id }) => <DeviceLink fleetId={fleetId} id={device_id} />,
          reason: ({ reason }) => <span class="soft">{reason.replaceAll('_', ' ')}</span>,
        },
      })}
      side={(letter, tools) => <LetterSide fleetId={fleetId} letter={letter} tools={tools} />}
      question={questionOf}
      settle={(verb, letters, signal, onProgress) =>
        settleLetters(fleetId, verb, letters ?? filter, signal, onProgress)
      }
      onChanged={() => {
        count.refresh();
        attention?.refresh();
      }}
    />
  );
}

/** Chooses the letters that are listed: the address is the state. */
function LetterFilters({ fleetId }: { fleetId: string }) {
  const of = (name: string) => addressFilter([fleetId, 'dead-letters'], search.value, name);
  return (
    <div class="filters">
      <FilterSelect label="Reason" options={reasons} {...of('reason')} />
      <FilterSelect label="Since" options={spans} {...of('since')} />
      <FilterText label="Name of the mail" lengthMax={255} {...of('name')} />
      <FilterText label="Device id" lengthMax={10} {...of('device')} />
    </div>
  );
}

/** Ways to what actions and forwarders have failed at: those letters are no mail, and not counted here. */
function OtherLetters({ fleetId }: { fleetId: string }) {
  const items = useContext(AttentionContext)?.value?.items ?? [];
  const others = items.flatMap(({ kind, also, name }) => {
    const found = [kind, ...also].find((one) => /^(action|forwarder)_dead_letters$/.test(one));
    return found === undefined || name === null ? [] : [{ name, isOfAction: found.startsWith('action') }];
  });
  if (others.length === 0) return null;
  return (
    <p class="small">
      Others are of{' '}
      {others.map(({ name, isOfAction }, at) => (
        <span key={`${isOfAction} ${name}`}>
          {at > 0 && ', '}
          <a
            class="link"
            href={
              isOfAction
                ? href([fleetId, 'dead-letters'], { action: name })
                : href([fleetId, 'forwarders', name])
            }
          >
            the {isOfAction ? 'action' : 'forwarder'} {name}
          </a>
        </span>
      ))}
      .
    </p>
  );
}

const shownGroups = 8;

/** What the letters of the list have in common: mail and reason, each a link to those alone. */
function LetterGroups({ fleetId, count }: { fleetId: string; count: LetterCountDocument }) {
  const { groups } = count;
  if (groups.length < 2) return null;
  const parameters = Object.fromEntries(search.value);
  return (
    <ul class="list is-groups" aria-label="By mail and reason">
      {groups.slice(0, shownGroups).map(({ name, reason, letters, last_died_at }) => (
        <li key={`${name} ${reason}`}>
          <a
            class="row"
            href={href([fleetId, 'dead-letters'], { ...parameters, after: undefined, name, reason })}
          >
            <span class="number strong">{letters.toLocaleString('en')}</span>
            <span class="cut">
              {name} <span class="soft">{reason.replaceAll('_', ' ')}</span>
            </span>
            <span class="end small">
              last <Moment time={last_died_at} />
            </span>
          </a>
        </li>
      ))}
      {groups.length > shownGroups && (
        <li class="row hint">and {groups.length - shownGroups} further kinds</li>
      )}
    </ul>
  );
}

function questionOf(verb: Verb, letters: Chosen<DeadLetterDocument>, count: string | undefined): string {
  const which =
    letters === undefined
      ? `All letters that fit the filter${count === undefined ? '' : `, ${count}`}`
      : letters.length === 1
        ? 'One letter'
        : `${letters.length.toLocaleString('en')} letters`;
  return verb === 'replay'
    ? `${which}. Each is queued again as a new mail, at the end of its mailbox.`
    : `${which}. They are removed for good, with their payloads.`;
}

/** One letter with its payload. */
function LetterSide({ fleetId, letter, tools }: LetterSideProps<DeadLetterDocument>) {
  const { device_id, mail_id, name, fetch_count, requeue_count, queued_at, reason, died_at } = letter;
  const path = pathTo('/fleets/{fleet_id}/dead-letters/{device_id}/{mail_id}', {
    fleet_id: fleetId,
    device_id,
    mail_id,
  });
  const payload = useResource(path, async (signal) => ({
    document: await call('GET', path, { signal }),
  }));
  return (
    <Section title={name} tools={tools}>
      <dl class="facts below">
        <Fact name="Device">
          <DeviceLink fleetId={fleetId} id={device_id} />
        </Fact>
        <Fact name="Ended">
          {reason.replaceAll('_', ' ')}, <Moment time={died_at} />
        </Fact>
        <Fact name="Queued">{queued_at === null ? 'never' : <Moment time={queued_at} />}</Fact>
        <Fact name="Fetched">{fetch_count}×</Fact>
        <Fact name="Requeued">{requeue_count}×</Fact>
        <Fact name="Mail">
          <a class="link mono small" href={href([fleetId, 'devices', device_id, 'mail', mail_id])}>
            {mail_id}
          </a>
        </Fact>
      </dl>
      <Loaded resource={payload}>{({ document }) => <Payload value={document} />}</Loaded>
    </Section>
  );
}
