import { type Markup, markup } from '../markup.ts';

/** Colours of the style sheet; the first is Fleetpost's own, the others go to the rest in order. */
const colourCount = 6;

/** One colour for each subject, the same in all charts of a page. */
export class Subjects {
  readonly names: readonly string[];

  constructor(names: Iterable<string>) {
    const others = new Set(names);
    others.delete('fleetpost');
    this.names = ['fleetpost', ...others];
  }

  /** The CSS class that gives it its colour. */
  classOf(name: string): string {
    return `s${Math.max(this.names.indexOf(name), 0) % colourCount}`;
  }

  legend(names: Iterable<string>): Markup {
    const entries = [...new Set(names)].map((name) => markup`<li class="${this.classOf(name)}">${name}</li>`);
    return markup`<ul class="legend">${entries}</ul>`;
  }
}
