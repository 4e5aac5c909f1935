import type { RunErrorDocument } from '../../../contract/action-run.ts';

/** An error for people, its stack below it. */
export function reasonText(error: RunErrorDocument | null): string | null {
  return error && `${error.code}: ${error.msg}`;
}

/** The same in one line, for a table. */
export function reasonInLine(error: RunErrorDocument | null): string | null {
  return reasonText(error)?.split('\n', 1)[0] ?? null;
}
