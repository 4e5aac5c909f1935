import { SourceMap, type SourceMapPayload } from 'node:module';
import { glueFile } from './glue.ts';
import type { RunError, RunErrorCode } from './run.ts';
import { harmlessLines } from './text.ts';

const inlineMap = /\n\/\/# sourceMappingURL=data:application\/json;(?:charset=utf-8;)?base64,([\w+/=]+)\s*$/i;

/** The code of an action as it runs, and the file that its frames name. */
export interface ActionSource {
  /** Of letters, digits, _, - and . */
  file: string;
  code: string;
}

/** Frames of a stack with the lines as the author wrote them, where the code ends with a map to those. */
function asWritten(frames: readonly string[], { file, code }: ActionSource): readonly string[] {
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

const charactersMax = 2_000;
const framesMax = 5;
/** Frames that are not the action's own. */
const hidden = new RegExp(`\\((native|${glueFile}.*)\\)$`);

/** Those that code in the sandbox may give its own end. */
const ownCodes: readonly RunErrorCode[] = ['threw', 'invalid_call', 'memory_exceeded', 'stack_exceeded'];

/** What the glue tells of a value that was thrown; it comes from the sandbox, so nothing of it is taken on trust. */
export function errorOf(described: string | undefined, source: ActionSource): RunError {
  const { code, msg, stack }: Record<string, unknown> = described === undefined ? {} : JSON.parse(described);
  const known = ownCodes.find((one) => one === code);
  if (known === undefined)
    return { code: 'memory_exceeded', msg: 'The run ended where nothing of its error could be kept.' };
  if (known === 'memory_exceeded')
    return { code: known, msg: 'The action used all of its memory (or threw null).' };
  const frames = String(stack ?? '')
    .split('\n')
    .filter((line) => /^\s*at /.test(line) && !hidden.test(line))
    .slice(0, framesMax);
  return {
    code: known,
    msg: harmlessLines([String(msg), ...asWritten(frames, source)].join('\n'), charactersMax),
  };
}

/** The engine itself broke off: nothing that it says any more is of use. */
export function engineFault(error: unknown): RunError {
  if (error instanceof RangeError)
    return { code: 'stack_exceeded', msg: 'The action used all of its stack.' };
  const text = error instanceof Error ? error.message : String(error);
  return { code: 'memory_exceeded', msg: `The engine broke off: ${harmlessLines(text, 200)}` };
}
