import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Credentials } from '../servers/subject.ts';
import { temporaryFolder } from '../servers/temporary-folder.ts';

export interface DeviceRequest {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  path: string;
  /** JSON text, ASCII. */
  body?: string;
  /** Adds an Idempotency-Key, a fresh one each time it is sent. */
  isKeyed?: boolean;
}

/** Stands in a prebuilt request where the generator puts a fresh UUIDv7. */
export const keyPlace = '00000000-0000-7000-8000-000000000000';

/** Digits before each request of a file, which tell its length. */
export const lengthDigits = 8;
/** Requests that are written in one go. */
const chunkRequests = 10_000;

/** A request as it goes over the wire. */
export function requestText(device: Credentials, { method, path, body, isKeyed }: DeviceRequest): string {
  const headers = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    `X-Fleet-ID: ${device.fleetId}`,
    `X-Device-ID: ${device.deviceId}`,
    `X-Device-Secret: ${device.secret}`,
  ];
  if (isKeyed) headers.push(`Idempotency-Key: ${keyPlace}`);
  if (body !== undefined) headers.push('Content-Type: application/json', `Content-Length: ${body.length}`);
  return `${headers.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

/** Prebuilt requests in a file, for a generator to send in turn. */
export interface Requests {
  file: string;
  first: string;
}

/** Each is written behind its length in decimal. */
export function writeRequests(texts: readonly string[]): Requests {
  const file = join(temporaryFolder(), 'requests');
  const handle = openSync(file, 'w');
  for (let start = 0; start < texts.length; start += chunkRequests) {
    const chunk = texts.slice(start, start + chunkRequests);
    const records = chunk.map((text) => String(text.length).padStart(lengthDigits, '0') + text);
    writeSync(handle, records.join(''), null, 'latin1');
  }
  closeSync(handle);
  return { file, first: texts[0] ?? '' };
}
