import { SourceMap, type SourceMapPayload } from 'node:module';

const inlineMap = /\n\/\/# sourceMappingURL=data:application\/json;(?:charset=utf-8;)?base64,([\w+/=]+)\s*$/i;

/** The code of an action as it runs, and the file that its frames name. */
export interface ActionSource {
  /** Of letters, digits, _, - and . */
  file: string;
  code: string;
}

/** Frames of a stack with the lines as the author wrote them, where the code ends with a map to those. */
export function asWritten(frames: readonly string[], { file, code }: ActionSource): readonly string[] {
  const [, encoded] = inlineMap.exec(code) ?? [];
  if (encoded === undefined) return frames;
  try {
    const place = new RegExp(`${file.replace('.', '\\.')}:(\\d+):(\\d+)`);
    const map = new SourceMap(JSON.parse(Buffer.from(encoded, 'base64').toString()) as SourceMapPayload);
    return frames.map((frame) =>
      frame.replace(place, (position, line: string, column: string) => {
        const found = map.findEntry(Number(line) - 1, Number(column) - 1);
        if (!('originalSource' in found)) return position;
        return `${found.originalSource}:${found.originalLine + 1}:${found.originalColumn + 1}`;
      }),
    );
  } catch {
    // Of code that brought a map of its own along.
    return frames;
  }
}
