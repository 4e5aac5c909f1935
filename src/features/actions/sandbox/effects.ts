import { actionStateKeyLengthMax, mailTtlSecondsMax, tagLengthMax } from '../../../core/bounds.ts';
import { deviceIdPattern, replaceKeyPattern, schemaNamePattern } from '../../../core/identity.ts';
import { isNestedOver, jsonDepthMax } from '../../../core/json-shape.ts';
import { isStateKey } from '../declaration/state-value.ts';
import type { MailSettings, RunError, RunLimits, Send, StateWrite } from './run.ts';
import { harmless } from './text.ts';

/** Not counting device ids. */
const argumentCharactersMax = 65_536;
const logLinesMax = 100;
const logCharactersMax = 1_024;

/**
 * Counts what one run asks for, and collects its effects until it has succeeded. The arguments come from operators' code, through an engine
 * that this code may have compromised: all are checked here, outside the sandbox.
 */
export class RunEffects {
  readonly sends: Send[] = [];
  readonly log: string[] = [];
  /** Set when the run exceeded a bound: it fails even if the action catches the error. */
  failure: RunError | undefined;
  readonly #limits: RunLimits;
  readonly #writes = new Map<string, string | null>();
  #mails = 0;
  #reads = 0;
  /** Bytes of payloads and values, which are outside the engine and so beyond its own memory limit. */
  #bytes = 0;
  #linesLeftOut = 0;

  constructor(limits: RunLimits) {
    this.#limits = limits;
  }

  /** One write per key, in order of each key's first write. */
  get writes(): StateWrite[] {
    return [...this.#writes].map(([key, value]) => ({ key, value }));
  }

  get lines(): string[] {
    const more = this.#linesLeftOut;
    return more === 0 ? this.log : [...this.log, `… ${more} more lines were left out.`];
  }

  /** Call before parsing arguments outside the engine, where its memory limit does not apply. */
  checkArguments(text: string): void {
    if (text.length > argumentCharactersMax + 16 * this.#limits.mailsMax)
      throw new RangeError('The arguments of this call are too long.');
  }

  send(to: unknown, name: unknown, payload: string | undefined, options: unknown): void {
    const devices = typeof to === 'string' ? [to] : to;
    if (!Array.isArray(devices)) throw new TypeError('send: `to` must be a device id or an array of them.');
    for (const device of devices) sentDeviceIdOf('send', device);
    this.#send('send', { devices }, devices.length, name, payload, options);
  }

  sendToTag(tag: unknown, name: unknown, payload: string | undefined, options: unknown): void {
    const known = boundedText('sendToTag: the tag', tag, tagLengthMax);
    this.#send('sendToTag', { tag: known }, 1, name, payload, options);
  }

  #send(
    call: string,
    to: Send['to'],
    mails: number,
    name: unknown,
    payload: string | undefined,
    options: unknown,
  ): void {
    if (typeof name !== 'string' || !schemaNamePattern.test(name))
      throw new TypeError(`${call}: the name of a mail is 1 to 255 of A-Z, a-z, 0-9, _ and -.`);
    const text = payload ?? '{}';
    this.#checkSize(`${call}: the payload`, text, this.#limits.payloadBytesMax);
    this.#checkDepth(`${call}: the payload`, text);
    if (!isObject(JSON.parse(text))) throw new TypeError(`${call}: the payload must be a JSON object.`);
    const settings = settingsOf(call, options);
    // A list counts each of its devices, and an empty one counts as one, or it could be sent without end.
    this.#mails += Math.max(1, mails);
    if (this.#mails > this.#limits.mailsMax)
      throw this.#exceeded('too_many_mails', `A run may send ${this.#limits.mailsMax} mails.`);
    this.#keep(text);
    if (mails > 0) this.sends.push({ to, name, payload: text, ...settings });
  }

  /** `value`: JSON text; undefined if the action passed something that is not JSON. */
  set(key: unknown, value: string | undefined): void {
    const known = stateKeyOf('state.set', key);
    if (value === undefined) throw new TypeError('state.set: the value must be JSON.');
    this.#checkSize('state.set: the value', value, this.#limits.stateValueBytesMax);
    this.#checkDepth('state.set: the value', value);
    JSON.parse(value);
    this.#write(known, value === 'null' ? null : value);
  }

  delete(key: unknown): void {
    this.#write(stateKeyOf('state.delete', key), null);
  }

  /** JSON text that this run wrote; undefined if nothing, so that the server has to be asked. */
  written(key: string): string | undefined {
    const value = this.#writes.get(key);
    return value === null ? 'null' : value;
  }

  /** Call before asking the server. */
  countRead(): void {
    this.#reads += 1;
    const { readsMax } = this.#limits;
    if (this.#reads > readsMax)
      throw this.#exceeded(
        'too_many_reads',
        `A run may read ${readsMax} devices and keys of its state (actionReadsMax).`,
      );
  }

  addLine(text: string): void {
    if (this.log.length < logLinesMax) this.log.push(harmless(text, logCharactersMax));
    else this.#linesLeftOut += 1;
  }

  #write(key: string, value: string | null): void {
    if (!this.#writes.has(key) && this.#writes.size >= this.#limits.stateWritesMax)
      throw this.#exceeded('state_full', `A run may write ${this.#limits.stateWritesMax} keys of its state.`);
    this.#keep(value ?? '');
    this.#writes.set(key, value);
  }

  #checkSize(what: string, text: string, bytesMax: number): void {
    if (text.length > bytesMax || Buffer.byteLength(text) > bytesMax)
      throw new RangeError(`${what} is larger than ${bytesMax} bytes as JSON.`);
  }

  #checkDepth(what: string, text: string): void {
    if (isNestedOver(jsonDepthMax, Buffer.from(text)))
      throw new RangeError(`${what} is nested over ${jsonDepthMax} levels.`);
  }

  #keep(text: string): void {
    this.#bytes += text.length;
    if (this.#bytes > this.#limits.memoryBytes)
      throw this.#exceeded('memory_exceeded', 'The mails and state of this run exceed its memory limit.');
  }

  #exceeded(code: RunError['code'], msg: string): RangeError {
    this.failure = { code, msg };
    return new RangeError(msg);
  }
}

export function sentDeviceIdOf(call: string, id: unknown): string {
  if (typeof id !== 'string' || !deviceIdPattern.test(id))
    throw new TypeError(`${call}: a device id is 10 of A-Z, a-z and 0-9.`);
  return id;
}

export function stateKeyOf(call: string, key: unknown): string {
  if (!isStateKey(key))
    throw new TypeError(`${call}: the key must be a text of 1 to ${actionStateKeyLengthMax} characters.`);
  return key;
}

function boundedText(what: string, text: unknown, charactersMax: number): string {
  if (typeof text !== 'string' || text.length === 0 || text.length > charactersMax || /\p{Cs}/u.test(text))
    throw new TypeError(`${what} must be a text of 1 to ${charactersMax} characters.`);
  return text;
}

function settingsOf(call: string, options: unknown): MailSettings {
  if (options === null || options === undefined) return {};
  if (!isObject(options)) throw new TypeError(`${call}: the options must be an object.`);
  const { ttlSeconds, replaceKey, ...others } = options as { ttlSeconds?: unknown; replaceKey?: unknown };
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw new TypeError(`${call}: there is no option ${harmless(JSON.stringify(other), 80)}.`);
  return {
    ...(ttlSeconds !== undefined && { ttlSeconds: ttlSecondsOf(call, ttlSeconds) }),
    ...(replaceKey !== undefined && { replaceKey: replaceKeyOf(call, replaceKey) }),
  };
}

function replaceKeyOf(call: string, key: unknown): string {
  if (typeof key !== 'string' || !replaceKeyPattern.test(key))
    throw new TypeError(`${call}: replaceKey is 1 to 64 of A-Z, a-z, 0-9, _ and -.`);
  return key;
}

function ttlSecondsOf(call: string, ttlSeconds: unknown): number {
  if (
    !Number.isSafeInteger(ttlSeconds) ||
    (ttlSeconds as number) < 1 ||
    (ttlSeconds as number) > mailTtlSecondsMax
  )
    throw new RangeError(`${call}: ttlSeconds must be a whole number from 1 to ${mailTtlSecondsMax}.`);
  return ttlSeconds as number;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
