/** Lines of a page. */
export type Lines = string[];

/** Text for a cell of a table, which is one line. */
function cell(text: string): string {
  return text.replace(/\s+/g, ' ').replaceAll('|', '\\|').trim();
}

export const code = (text: string): string => `\`${text}\``;

/** A table, or nothing where it has no rows. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): Lines {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(heading), line(heading.map(() => '---')), ...rows.map(line), ''];
}

/** A page, which begins with what it is about and whom it is for. */
export function page(title: string, reader: string, lines: Lines): string {
  const made = '<!-- Made from the code by `npm run docs`: change the code. -->';
  return `${[`# ${title}`, '', `For ${reader}`, '', made, '', ...lines].join('\n').trimEnd()}\n`;
}
