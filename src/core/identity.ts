import { randomFillSync } from 'node:crypto';

/** D1: the formats of the three credentials, and D2's of schema and mail names. */
export const fleetIdPattern = /^[A-Za-z0-9]{8}$/;
export const deviceIdPattern = /^[A-Za-z0-9]{10}$/;
export const deviceSecretPattern = /^FOS-[A-Za-z0-9]{32}$/;
export const schemaNamePattern = /^[A-Za-z0-9_-]{1,255}$/;

export const fleetIdLength = 8;
export const deviceKeyLength = 18;

declare const brand: unique symbol;
/** Fleet id and device id in one: the 18 ASCII characters that name a device everywhere inside (D1). */
export type DeviceKey = string & { readonly [brand]: 'DeviceKey' };

/** Both ids must have been checked against D1 before. */
export function deviceKeyOf(fleetId: string, deviceId: string): DeviceKey {
  return (fleetId + deviceId) as DeviceKey;
}

/** Whether a text can name a device (D1). */
export function isDeviceKey(text: string): text is DeviceKey {
  return /^[A-Za-z0-9]{18}$/.test(text);
}

export function fleetIdOf(device: DeviceKey): string {
  return device.slice(0, fleetIdLength);
}

export function deviceIdOf(device: DeviceKey): string {
  return device.slice(fleetIdLength);
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
/** Bytes from here up are thrown away: 252 is the largest multiple of 36, so every character is as likely. */
const acceptedBytes = 252;

/** Drawn in advance: a call into the generator costs as much as thousands of bytes of it. */
const pool = Buffer.alloc(4_096);
let poolAt = pool.length;

function randomByte(): number {
  if (poolAt === pool.length) {
    randomFillSync(pool);
    poolAt = 0;
  }
  const byte = pool.readUInt8(poolAt);
  // A used byte is in some secret: it does not stay in memory.
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

/** With which devices register themselves. */
export function generateClaimToken(): string {
  return `FPC-${randomCharacters(32)}`;
}

/** Of the admin API. */
export function generateApiToken(): string {
  return `FPT-${randomCharacters(32)}`;
}
