import { type Markup, markup } from '../markup.ts';

/** All charts are drawn this wide and shrink with the page. */
export const chartWidth = 960;

export interface Figure {
  title: string;
  /** Conditions that hold for all of it, and how it is to be read. */
  caption: string;
  height: number;
  drawing: Markup;
  /** The same in words and numbers. */
  table: Markup;
}

/** A chart with its title, its caption, and the table behind it. */
export function chartFigure({ title, caption, height, drawing, table }: Figure): Markup {
  return markup`<figure>
<figcaption><b>${title}</b>${caption === '' ? undefined : markup` <span>${caption}</span>`}</figcaption>
<div class="scroll"><svg role="img" aria-label="${title}. The table below has all its values." viewBox="0 0 ${chartWidth} ${height}" width="${chartWidth}" height="${height}">${drawing}</svg></div>
<details><summary>Table</summary>${table}</details>
</figure>
`;
}
