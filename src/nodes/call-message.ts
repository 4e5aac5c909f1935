import { ApiError, type ErrorOptions, isErrorCode } from '../core/errors.ts';
import { pack, unpack } from '../storage/tables/codec.ts';

/** Notification channel of the leader. */
export const callChannel = 'fleetpost_call';

/** Notification channel of a caller. */
export function answerChannelOf(caller: string): string {
  return `fleetpost_answer_${caller}`;
}

/** A request of a node to the leader. */
export interface CallRequest {
  /** Name in the leader's list of methods. */
  method: string;
  params: readonly unknown[];
  /** The caller's signal was aborted from the start: the method must not wait for anything. */
  isAborted: boolean;
}

export type CallAnswer = { value: unknown } | { error: ApiError };

export function packRequest({ method, params, isAborted }: CallRequest): Buffer {
  return pack([method, params, isAborted]);
}

/** @throws Error for bytes that are no request */
export function unpackRequest(bytes: Uint8Array): CallRequest {
  const [method, params, isAborted] = unpack(bytes) as Partial<[unknown, unknown, unknown]>;
  if (typeof method !== 'string' || !Array.isArray(params)) throw new Error('not a request of a node');
  return { method, params, isAborted: isAborted === true };
}

export function packAnswer(answer: CallAnswer): Buffer {
  return pack(
    'error' in answer ? { code: answer.error.code, options: answer.error.options } : [answer.value],
  );
}

/** @throws Error for bytes that are no answer */
export function unpackAnswer(bytes: Uint8Array): CallAnswer {
  const answer = unpack(bytes) as unknown[] | { code?: unknown; options?: ErrorOptions };
  if (Array.isArray(answer)) return { value: answer[0] };
  // A node of another version may use a code unknown here.
  const code = isErrorCode(answer.code) ? answer.code : 'internal_error';
  return { error: new ApiError(code, answer.options) };
}
