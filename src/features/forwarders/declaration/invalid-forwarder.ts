import { ApiError } from '../../../core/errors.ts';

/** Error of a declaration that cannot be. */
export function invalidForwarder(msg: string): ApiError {
  return new ApiError('invalid_forwarder', { msg });
}
