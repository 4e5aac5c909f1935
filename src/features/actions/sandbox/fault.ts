import { SourceMap, type SourceMapPayload } from 'node:module';
import { glueFile } from './glue.ts';
import type { RunError, RunErrorCode } from './run.ts';
import { harmlessLines } from './text.ts';

const inlineMap = /\n\/\/# sourceMappingURL=data:application\/json;(?:charset=utf-8;)?base64,([\w+/=]+)\s*$/i;

/** The code of an action as it runs, and the file name in its stack frames. */
export interface ActionSource {
  /** Consists of letters, digits, _, - and . */
  file: string;
  code: string;
}

/** Maps stack frames to the source if the code ends with a source map. */
function asWritten(frames: readonly string[], { file, code }: ActionSource): readonly string[] {
  const [, encoded] = inlineMap.exec(code) ?? [];
  if (encoded === undefined) return frames;
  try {
    const location = new RegExp(`${file.replace('.', '\\.')}:(\\d+):(\\d+)`);
    const map = new SourceMap(JSON.parse(Buffer.from(encoded, 'base64').toString()) as SourceMapPayload);
    return frames.map((frame) =>
      frame.replace(location, (position, line: string, column: string) => {
        const found = map.findEntry(Number(line) - 1, Number(column) - 1);
        if (!('originalSource' in found)) return position;
        return `${found.originalSource}:${found.originalLine + 1}:${found.originalColumn + 1}`;
      }),
    );
  } catch {
    // The code brought a broken source map of its own.
    return frames;
  }
}

const charactersMax = 2_000;
const framesMax = 5;
/** Frames outside the action's code. */
const hidden = new RegExp(`\\((native|${glueFile}.*)\\)$`);

/** Codes that code in the sandbox may report. */
const ownCodes: readonly RunErrorCode[] = ['threw', 'invalid_call', 'memory_exceeded', 'stack_exceeded'];

/** Parses the glue's description of a thrown value. It comes from the sandbox, so all of it is checked. */
export function errorOf(described: string | undefined, source: ActionSource): RunError {
  const { code, msg, stack }: Record<string, unknown> = described === undefined ? {} : JSON.parse(described);
  const known = ownCodes.find((one) => one === code);
  if (known === undefined)
    return { code: 'memory_exceeded', msg: 'The run failed without memory left to describe its error.' };
  if (known === 'memory_exceeded')
    return { code: known, msg: 'The action used up its memory (or threw null).' };
  const frames = String(stack ?? '')
    .split('\n')
    .filter((line) => /^\s*at /.test(line) && !hidden.test(line))
    .slice(0, framesMax);
  return {
    code: known,
    msg: harmlessLines([String(msg), ...asWritten(frames, source)].join('\n'), charactersMax),
  };
}

/** Describes a crash of the engine itself, which is unusable afterwards. */
export function engineFault(error: unknown): RunError {
  if (error instanceof RangeError) return { code: 'stack_exceeded', msg: 'The action used up its stack.' };
  const text = error instanceof Error ? error.message : String(error);
  return { code: 'memory_exceeded', msg: `The engine crashed: ${harmlessLines(text, 200)}` };
}
