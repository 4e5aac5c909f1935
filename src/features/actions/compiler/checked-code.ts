import { ApiError } from '../../../core/errors.ts';
import type { SchemaText } from '../../../declarations/fleet.ts';
import type { ActionTrigger } from '../declaration/action.ts';
import { sourceBytesMax, triggersMax } from '../declaration/action-draft.ts';
import type { TypeFault } from './type-check.ts';

/** A source, and the schemas whose records it runs for; absent: of any payload. */
export interface CheckedCode {
  source: string;
  on?: readonly ActionTrigger[];
  /** The action, if it is known: a newer check of it takes the place of one that waits. */
  name?: string;
}

/**
 * Texts of the schemas that payloads of the code's records match.
 * @throws ApiError invalid_action if there is more to check than a deployment may have.
 */
export function schemasOf({ source, on = [] }: CheckedCode, schemas: readonly SchemaText[]): string[] {
  if (Buffer.byteLength(source) > sourceBytesMax) {
    throw new ApiError('invalid_action', {
      msg: `The source is larger than ${sourceBytesMax} bytes in UTF-8.`,
    });
  }
  if (on.length > triggersMax) {
    throw new ApiError('invalid_action', { msg: `An action listens to at most ${triggersMax} schemas.` });
  }
  return schemas
    .filter(({ kind, name }) => on.some((one) => one.kind === kind && one.schema === name))
    .map(({ text }) => text);
}

/** @throws ApiError invalid_action, with each error under its line and column. */
export function refuseFaults(faults: readonly TypeFault[]): void {
  if (faults.length === 0) return;
  throw new ApiError('invalid_action', {
    msg: 'The action has type errors. Mend them, or force the deployment.',
    errors: faults.map(({ line, column, msg }) => ({ path: `${line}:${column}`, msg })),
  });
}
