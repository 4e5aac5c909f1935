import { ApiError, type ErrorOptions, isErrorCode } from '../core/errors.ts';
import { pack, unpack } from '../storage/lmdb/environment/codec.ts';

/** The channel of the node that answers. */
export const callChannel = 'fleetpost_call';

/** The channel of a node that asks. */
export function answerChannelOf(caller: string): string {
  return `fleetpost_answer_${caller}`;
}

/** What a node asks of the one that has the jobs. */
export interface CallRequest {
  /** Of a list that the one who answers has. */
  method: string;
  given: readonly unknown[];
  /** Its signal says so from the start: it must not wait for anything. */
  isAborted: boolean;
}

/** What it is answered. */
export type CallAnswer = { value: unknown } | { error: ApiError };

export function packRequest({ method, given, isAborted }: CallRequest): Buffer {
  return pack([method, given, isAborted]);
}

/** @throws Error for what is no request. */
export function unpackRequest(bytes: Uint8Array): CallRequest {
  const [method, given, isAborted] = unpack(bytes) as Partial<[unknown, unknown, unknown]>;
  if (typeof method !== 'string' || !Array.isArray(given)) throw new Error('not a request of a node');
  return { method, given, isAborted: isAborted === true };
}

export function packAnswer(answer: CallAnswer): Buffer {
  return pack(
    'error' in answer ? { code: answer.error.code, options: answer.error.options } : [answer.value],
  );
}

/** @throws Error for what is no answer. */
export function unpackAnswer(bytes: Uint8Array): CallAnswer {
  const answer = unpack(bytes) as unknown[] | { code?: unknown; options?: ErrorOptions };
  if (Array.isArray(answer)) return { value: answer[0] };
  // A node of another version may have a code that this one does not know.
  const code = isErrorCode(answer.code) ? answer.code : 'internal_error';
  return { error: new ApiError(code, answer.options) };
}
