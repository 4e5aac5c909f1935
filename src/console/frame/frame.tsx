import type { ComponentChildren } from 'preact';
import type { ListDocument } from '../../contract/document.ts';
import type { FleetDocument } from '../../contract/fleet.ts';
import { Banner } from '../parts/banner.tsx';
import { Commands, type CommandsProps } from '../parts/commands.tsx';
import { ReadNote } from '../parts/moment.tsx';
import { unreachableSince } from '../server/client.ts';
import { hourText } from '../server/clock.ts';
import type { Resource } from '../server/resource.ts';
import { AttentionContext, useAttention } from './attention.ts';
import { Foot } from './foot.tsx';
import { Rail } from './rail.tsx';

/** The frame around every screen. */
export function Frame(props: {
  fleetId: string;
  fleets: Resource<ListDocument<FleetDocument>>;
  children: ComponentChildren;
}) {
  const since = unreachableSince.value;
  return (
    <AttentionContext.Provider value={useAttention(props.fleetId)}>
      <div class="frame">
        <Rail fleetId={props.fleetId} fleets={props.fleets.value?.items ?? []} />
        <main class="screen">
          {since !== undefined && (
            <Banner kind="bad">
              The server does not answer since {hourText(since)}. What is shown is older; the console tries
              again.
            </Banner>
          )}
          {props.children}
          <Foot fleetId={props.fleetId} />
        </main>
      </div>
    </AttentionContext.Provider>
  );
}

export interface ScreenProps {
  title: ComponentChildren;
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
export function Screen({ title, read, beside, tools, commands = [], children }: ScreenProps) {
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
        {beside}
        {read && <ReadNote readAtMs={read.readAtMs} failingSinceMs={read.failingSinceMs} />}
        {tools && <div class="tools">{tools}</div>}
      </div>
      <div class="body">{children}</div>
      {commands.map((one) => (
        <Commands key={one.command.join(' ')} {...one} />
      ))}
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
