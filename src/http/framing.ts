import { ApiError } from '../core/errors.ts';
import type { HttpRequest } from './uws.ts';

/** What `checkFraming` answers for a chunked body, whose length is not known before its end. */
export const chunked = -1;

function refused(msg: string): ApiError {
  return new ApiError('bad_request', { msg, closeConnection: true });
}

/**
 * The declared length of the body: 0 for none, `chunked`, or its bytes. The library takes the first of two
 * lengths, where a proxy in front might take the last: a request that can be read in two ways is refused
 * and its connection closed (D9; RFC 9112, 6.3 and 11.2).
 */
export function checkFraming(request: HttpRequest): number {
  const declared = request.getHeader('content-length');
  const encoding = request.getHeader('transfer-encoding');
  if (declared === '' && encoding === '') return 0;
  let lengths = 0;
  let encodings = 0;
  request.forEach((name) => {
    if (name === 'content-length') lengths += 1;
    else if (name === 'transfer-encoding') encodings += 1;
  });
  if (lengths + encodings > 1) throw refused('A request has one Content-Length or one Transfer-Encoding.');
  if (encodings === 1) {
    if (encoding.toLowerCase() !== 'chunked') throw refused('Transfer-Encoding must be chunked.');
    return chunked;
  }
  if (!/^\d{1,15}$/.test(declared)) throw refused('Content-Length must be a number.');
  return Number(declared);
}
