import type { ComponentChildren } from 'preact';

/** A name and what is known by it, as a line of `<dl class="facts">`. */
export function Fact(props: { name: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{props.name}</dt>
      <dd class={props.class}>{props.children}</dd>
    </>
  );
}

/** A number with its name; `tone` colours one that is not as it should be, `note` says what it counts. */
export type Figure = readonly [name: string, figure: string, tone?: string, note?: string];

/** Numbers in a row. */
export function Figures(props: { figures: readonly Figure[]; isSmall?: boolean }) {
  return (
    <div class={`figures ${props.isSmall ? 'is-small' : ''}`}>
      {props.figures.map(([name, figure, tone = '', note]) => (
        <div key={name}>
          <span class="soft">{name}</span>
          <span class={`figure ${tone}`}>{figure}</span>
          {note && <span class="small faint">{note}</span>}
        </div>
      ))}
    </div>
  );
}
