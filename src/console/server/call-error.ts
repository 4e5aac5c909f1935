import type { ErrorDocument } from '../../contract/document.ts';

/** A request that did not succeed. `status` is 0 if there was no answer. */
export class CallError extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: readonly { path: string; msg: string }[];

  constructor(status: number, { error, msg, errors = [] }: ErrorDocument) {
    super(msg);
    this.status = status;
    this.code = error;
    this.errors = errors;
  }
}
