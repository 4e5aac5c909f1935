import { ApiError } from '../../core/errors.ts';
import type { HttpRequest } from '../uws/uws.ts';

/** True if a content type is application/json, with or without parameters (D10). */
export function isJson(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  return contentType.split(';', 1)[0]?.trim().toLowerCase() === 'application/json';
}

/** `bodyBytes` of a chunked body, whose length is unknown before its end. */
export const chunked = -1;

function refused(msg: string): ApiError {
  return new ApiError('bad_request', { msg, closeConnection: true });
}

/**
 * Reads the headers that this server uses, in one pass over all: only so does it see duplicates and empty values, which
 * the library's own lookup hides. Of duplicates the first counts, except for the two headers that frame the body.
 */
export class RequestHeaders {
  fleetId = '';
  deviceId = '';
  secret = '';
  host = '';
  accept = '';
  prefer = '';
  contentType = '';
  /** An empty value is a key too, an invalid one (D18). */
  idempotencyKey: string | undefined;
  /** As for the key, an empty value is an invalid one (D25). */
  recordedAt: string | undefined;
  traceparent = '';
  #connection: string | undefined;
  #length: string | undefined;
  #encoding: string | undefined;
  #framings = 0;

  constructor(request: HttpRequest) {
    request.forEach((name, value) => {
      this.#take(name, value);
    });
  }

  /** True if the client asked to close the connection: by the same test as the library's, which then closes it. */
  get asksToClose(): boolean {
    return this.#connection?.length === 'close'.length;
  }

  /**
   * The declared length of the body: 0 for none, `chunked`, or its bytes. The library takes the first of two lengths
   * where a proxy in front might take the last, so ambiguous framing is refused and the connection closed, against
   * request smuggling (D9; RFC 9112, 6.3 and 11.2).
   */
  get bodyBytes(): number {
    if (this.#framings === 0) return 0;
    if (this.#framings > 1) throw refused('Send either one Content-Length or one Transfer-Encoding.');
    if (this.#encoding !== undefined) {
      if (this.#encoding.toLowerCase() !== 'chunked') throw refused('Transfer-Encoding must be chunked.');
      return chunked;
    }
    if (!/^\d{1,15}$/.test(this.#length ?? '')) throw refused('Content-Length must be a number.');
    return Number(this.#length);
  }

  /** Preferences of several headers count together (RFC 7240, 2). */
  #addPreference(value: string): void {
    this.prefer += this.prefer === '' ? value : `,${value}`;
  }

  /** Switches on the length first: most headers are none of these, and names are fresh strings each time. */
  #take(name: string, value: string): void {
    switch (name.length) {
      case 4:
        if (name === 'host') this.host ||= value;
        break;
      case 6:
        if (name === 'accept') this.accept ||= value;
        else if (name === 'prefer') this.#addPreference(value);
        break;
      case 10:
        if (name === 'x-fleet-id') this.fleetId ||= value;
        else if (name === 'connection') this.#connection ??= value;
        break;
      case 11:
        if (name === 'x-device-id') this.deviceId ||= value;
        else if (name === 'recorded-at') this.recordedAt ??= value;
        else if (name === 'traceparent') this.traceparent ||= value;
        break;
      case 12:
        if (name === 'content-type') this.contentType ||= value;
        break;
      case 14:
        if (name === 'content-length') {
          this.#length = value;
          this.#framings += 1;
        }
        break;
      case 15:
        if (name === 'x-device-secret') this.secret ||= value;
        else if (name === 'idempotency-key') this.idempotencyKey ??= value;
        break;
      case 17:
        if (name === 'transfer-encoding') {
          this.#encoding = value;
          this.#framings += 1;
        }
        break;
    }
  }
}
