import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { ListDocument } from '../../contract/document.ts';
import type { FleetDocument } from '../../contract/fleet.ts';
import { rememberRecent } from '../page/recent.ts';
import { path } from '../page/router.ts';
import { Banner } from '../parts/banner.tsx';
import type { CommandsProps } from '../parts/commands.tsx';
import { ReadNote } from '../parts/moment.tsx';
import { shownText } from '../parts/untrusted.tsx';
import { unreachableSince } from '../server/client.ts';
import { hourText } from '../server/clock.ts';
import type { Resource } from '../server/resource.ts';
import { AttentionContext, useAttention } from './attention.ts';
import { Foot } from './foot.tsx';
import { screenOf } from './navigation.tsx';
import { Rail } from './rail.tsx';

/** The frame around every screen. */
export function Frame(props: {
  fleetId: string;
  fleets: Resource<ListDocument<FleetDocument>>;
  children: ComponentChildren;
}) {
  const since = unreachableSince.value;
  const attention = useAttention(props.fleetId);
  const fleet = props.fleets.value?.items.find(({ fleet_id }) => fleet_id === props.fleetId);
  useTitle(fleet?.name || props.fleetId, attention.value?.items.length ?? 0);
  return (
    <AttentionContext.Provider value={attention}>
      <div class="frame">
        <button type="button" class="button skip" onClick={() => document.getElementById('content')?.focus()}>
          Skip to the content
        </button>
        <Rail fleetId={props.fleetId} fleets={props.fleets.value?.items ?? []} />
        <main class="screen" id="content" tabIndex={-1}>
          {since !== undefined && (
            <Banner kind="bad">
              The server does not answer since {hourText(since)}. What is shown is older; the console tries
              again.
            </Banner>
          )}
          {props.children}
        </main>
      </div>
    </AttentionContext.Provider>
  );
}

/** Names the screen of an address: a device by its id alone, anything else with what it is. */
function screenTitle([, part, first, ...rest]: readonly string[]): string {
  const name = screenOf(part)?.name ?? 'Not here';
  if (first === undefined || part === 'access') return name;
  if (part === 'devices') return rest.length > 0 ? `Mail of ${first}` : first;
  if (part === 'broadcasts') return 'Broadcast';
  return `${rest[0] ?? first} · ${name}`;
}

/** Names the tab, and so its entries of the history: the screen, the fleet, and how many things need attention. */
function useTitle(fleetName: string, attention: number): void {
  const count = attention > 0 ? `(${attention.toLocaleString('en')}) ` : '';
  const title = `${count}${shownText(screenTitle(path.value), 60)} · ${shownText(fleetName, 40)} · Fleetpost`;
  useEffect(() => {
    document.title = title;
  }, [title]);
}

export interface ScreenProps {
  title: ComponentChildren;
  /** Name of the thing, where its address has only an id. */
  name?: string | undefined;
  /** The list or the document that the screen is about. */
  read?: Pick<Resource<unknown>, 'readAtMs' | 'failingSinceMs'> | undefined;
  /** Shown beside the title: a state, an id. */
  beside?: ComponentChildren;
  tools?: ComponentChildren;
  /** The commands that do what the screen does. */
  commands?: readonly CommandsProps[];
  children?: ComponentChildren;
}

/** A screen: its first line, what it shows, and the same in a terminal. */
export function Screen({ title, name = '', read, beside, tools, commands = [], children }: ScreenProps) {
  const parts = path.value;
  const isThing =
    parts.length > 2 && parts[1] !== 'access' && (read === undefined || read.readAtMs !== undefined);
  useEffect(() => {
    if (isThing) rememberRecent({ parts, title: screenTitle(parts), note: shownText(name, 80) });
  }, [isThing, parts.join('/'), name]);
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
        {beside}
        {read && <ReadNote readAtMs={read.readAtMs} failingSinceMs={read.failingSinceMs} />}
        {tools && <div class="tools">{tools}</div>}
      </div>
      <div class="body">{children}</div>
      <Foot commands={commands} />
    </>
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
