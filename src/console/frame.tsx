import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { ListDocument } from '../contract/document.ts';
import type { FleetDocument } from '../contract/fleet.ts';
import { go, href, path } from './page/router.ts';
import { Banner } from './parts/banner.tsx';
import { Icon, type IconName } from './parts/icon.tsx';
import { Moment, ReadNote } from './parts/moment.tsx';
import { shownText, Untrusted } from './parts/untrusted.tsx';
import { unreachableSince } from './server/client.ts';
import { exactText } from './server/clock.ts';
import type { Resource } from './server/resource.ts';
import { logOut, self } from './session/session.ts';

const screens: readonly (readonly [string, string, IconName])[] = [
  ['', 'Now', 'pulse'],
  ['devices', 'Devices', 'device'],
  ['live', 'Live', 'live'],
  ['dead-letters', 'Dead letters', 'tray'],
  ['actions', 'Actions', 'code'],
  ['schemas', 'Schemas', 'braces'],
];

/** Dead letters of today, as Now has read them last. */
export const lettersToday = signal(0);

function Rail({ fleetId, fleets }: { fleetId: string; fleets: readonly FleetDocument[] }) {
  const current = path.value[1] ?? '';
  const isListed = fleets.some(({ fleet_id }) => fleet_id === fleetId);
  return (
    <aside class="rail">
      <a class="brand" href={href([fleetId])}>
        <Icon name="mail" />
        Fleetpost
      </a>
      <select
        class="select fleet"
        aria-label="Fleet"
        value={fleetId}
        onChange={({ currentTarget }) => go(href([currentTarget.value, ...(current ? [current] : [])]))}
      >
        {!isListed && <option value={fleetId}>{fleetId}</option>}
        {fleets.map(({ fleet_id, name }) => (
          <option key={fleet_id} value={fleet_id}>
            {name === '' ? fleet_id : `${shownText(name, 40)} · ${fleet_id}`}
          </option>
        ))}
      </select>
      <nav aria-label="Screens">
        <ul>
          {screens.map(([part, name, icon]) => (
            <li key={part}>
              <a
                href={href(part === '' ? [fleetId] : [fleetId, part])}
                aria-current={part === current ? 'page' : undefined}
              >
                <Icon name={icon} />
                {name}
                {part === 'dead-letters' && lettersToday.value > 0 && (
                  <span class="count" title="Today">
                    {lettersToday.value}
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Who />
    </aside>
  );
}

/** Whose session it is, what it may do, and how long. */
function Who() {
  if (self.value === undefined) return null;
  const { name, scopes, fleet_id, expires_at } = self.value;
  return (
    <div class="who">
      <Untrusted text={name} lengthMax={40} />
      <span>
        {scopes.join(', ')}; {fleet_id ?? 'all fleets'}
      </span>
      {expires_at !== null && (
        <span>
          ends <Moment time={expires_at} />
        </span>
      )}
      <button type="button" class="button is-plain" onClick={logOut}>
        <Icon name="exit" />
        Log out
      </button>
    </div>
  );
}

/** What is around every screen. */
export function Frame(props: {
  fleetId: string;
  fleets: Resource<ListDocument<FleetDocument>>;
  children: ComponentChildren;
}) {
  const since = unreachableSince.value;
  return (
    <div class="frame">
      <Rail fleetId={props.fleetId} fleets={props.fleets.value?.items ?? []} />
      <main class="screen">
        {since !== undefined && (
          <Banner kind="bad">
            The server does not answer since {exactText(since).slice(11, 19)}. What is shown is older; the
            console tries again.
          </Banner>
        )}
        {props.children}
      </main>
    </div>
  );
}

export interface HeadProps {
  title: ComponentChildren;
  /** Of the list or the document that the screen is about. */
  read?: Pick<Resource<unknown>, 'readAtMs' | 'failingSinceMs'>;
  beside?: ComponentChildren;
  tools?: ComponentChildren;
}

/** The first line of a screen. */
export function Head({ title, read, beside, tools }: HeadProps) {
  return (
    <div class="head">
      <h1>{title}</h1>
      {beside}
      {read && <ReadNote readAtMs={read.readAtMs} failingSinceMs={read.failingSinceMs} />}
      {tools && <div class="tools">{tools}</div>}
    </div>
  );
}

export interface SectionProps {
  title: string;
  note?: ComponentChildren;
  tools?: ComponentChildren;
  children: ComponentChildren;
}

/** A part of a screen under its own heading. */
export function Section({ title, note, tools, children }: SectionProps) {
  return (
    <section aria-label={title}>
      <div class="section-head">
        <h2>{title}</h2>
        {note}
        {tools && <div class="tools">{tools}</div>}
      </div>
      {children}
    </section>
  );
}
