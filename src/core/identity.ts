import { randomFillSync } from 'node:crypto';

/** Formats of the three credentials (D1), and of schema and mail names (D2). */
export const fleetIdPattern = /^[A-Za-z0-9]{8}$/;
export const deviceIdPattern = /^[A-Za-z0-9]{10}$/;
export const deviceSecretPattern = /^FOS-[A-Za-z0-9]{32}$/;
export const schemaNamePattern = /^[A-Za-z0-9_-]{1,255}$/;
/** Key under which a newer mail replaces one that waits (D31). */
export const replaceKeyPattern = /^[A-Za-z0-9_-]{1,64}$/;

export const fleetIdLength = 8;
export const deviceIdLength = 10;
export const deviceKeyLength = fleetIdLength + deviceIdLength;

declare const brand: unique symbol;
/** Fleet id and device id: the 18 ASCII characters that identify a device internally (D1). */
export type DeviceKey = string & { readonly [brand]: 'DeviceKey' };

/** Both ids must already be valid by D1. */
export function deviceKeyOf(fleetId: string, deviceId: string): DeviceKey {
  return (fleetId + deviceId) as DeviceKey;
}

/** True if the text is a valid device key (D1). */
export function isDeviceKey(text: string): text is DeviceKey {
  return /^[A-Za-z0-9]{18}$/.test(text);
}

export function fleetIdOf(device: DeviceKey): string {
  return device.slice(0, fleetIdLength);
}

export function deviceIdOf(device: DeviceKey): string {
  return device.slice(fleetIdLength);
}

/** FNV-1a, 32 bits: for tables of a fixed size, to which callers fold it. */
export function deviceHash(device: DeviceKey): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < deviceKeyLength; i += 1) hash = Math.imul(hash ^ device.charCodeAt(i), 0x01000193);
  return hash;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
/** Bytes from here up are rejected: 252 is the largest multiple of 36, so all characters are equally likely. */
const acceptedBytes = 252;

/** Random bytes in stock: a call to the generator costs as much as thousands of its bytes. */
const pool = Buffer.alloc(4_096);
let poolAt = pool.length;

function randomByte(): number {
  if (poolAt === pool.length) {
    randomFillSync(pool);
    poolAt = 0;
  }
  const byte = pool.readUInt8(poolAt);
  // A used byte is part of a secret: erase it.
  pool.writeUInt8(0, poolAt);
  poolAt += 1;
  return byte;
}

function randomCharacters(length: number): string {
  let text = '';
  while (text.length < length) {
    const byte = randomByte();
    if (byte < acceptedBytes) text += alphabet[byte % alphabet.length];
  }
  return text;
}

export function generateFleetId(): string {
  return randomCharacters(8);
}

export function generateDeviceId(): string {
  return randomCharacters(10);
}

export function generateDeviceSecret(): string {
  return `FOS-${randomCharacters(32)}`;
}

/** Generates a token for devices to register themselves. */
export function generateClaimToken(): string {
  return `FPC-${randomCharacters(32)}`;
}

/** Generates a token for the admin API. */
export function generateApiToken(): string {
  return `FPT-${randomCharacters(32)}`;
}

/** The secret of a session of the console: the browser has a half in a cookie, the page has the other, its key. */
export interface SessionSecret {
  cookie: string;
  key: string;
}

/** 134 bits, so that whoever has one half cannot guess the other. */
const sessionHalfLength = 26;

/** Generates the secret of a session of the console. */
export function generateSessionSecret(): SessionSecret {
  return { cookie: randomCharacters(sessionHalfLength), key: randomCharacters(sessionHalfLength) };
}

/** The token for the admin API that the two halves make. */
export function sessionToken({ cookie, key }: SessionSecret): string {
  return `FPT-${cookie}${key}`;
}
