import type { Settings } from './settings.ts';

/** One configuration key as JSON Schema. Hand-written: TypeBox would add 300 ms to the start of every command. */
export interface Key<T> {
  type: 'integer' | 'string' | 'boolean' | 'object';
  default: T;
  description: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  /** The expected format in words, for the error message. */
  patternText?: string;
  enum?: readonly T[];
  /** Changed by SIGHUP. All other keys are fixed at start. */
  isReloadable?: true;
  required?: readonly string[];
  properties?: Readonly<Record<string, unknown>>;
  additionalProperties?: boolean;
  if?: object;
  then?: object;
  else?: object;
}

interface Reloadable {
  isReloadable: true;
}

/** Marks a key whose options say that SIGHUP changes it: it is one of the `Settings`. */
type Marked<O> = O extends Reloadable ? Reloadable : unknown;

interface IntegerOptions extends Partial<Reloadable> {
  default: number;
  minimum: number;
  maximum: number;
}

/** Pattern of 0 to 65535. */
export const port = '(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
/** `host:port`, with brackets around an IPv6 host. */
const hostPort = `^(\\[[0-9a-fA-F:.]+\\]|[^:\\[\\]/\\s]+):${port}$`;

export const integer = <O extends IntegerOptions>(options: O, description: string) =>
  ({ type: 'integer', ...options, description }) as Key<number> & Marked<O>;
export const text = <O extends Partial<Key<string>>>(value: string, description: string, options?: O) =>
  ({ type: 'string', default: value, description, maxLength: 4096, ...options }) as Key<string> & Marked<O>;
export const boolean = <O extends Partial<Reloadable>>(value: boolean, description: string, options?: O) =>
  ({ type: 'boolean', default: value, description, ...options }) as Key<boolean> & Marked<O>;
/** HOST:PORT; may be empty only if the default is. */
export const address = (value: string, description: string): Key<string> =>
  text(value, description, {
    pattern: value === '' ? `^$|${hostPort}` : hostPort,
    patternText: 'HOST:PORT, with a port from 0 to 65535',
  });

type Keys = Record<string, Key<unknown>>;

/** The values of a group of keys after validation. */
export type ValuesOf<K extends Keys> = { readonly [Name in keyof K]: K[Name]['default'] };

/** The values that are fixed at start. */
export type FixedOf<K extends Keys> = ValuesOf<{
  [Name in keyof K as K[Name] extends Reloadable ? never : Name]: K[Name];
}>;

/** The values that SIGHUP changes. */
export type SettingsOf<K extends Keys> = ValuesOf<{
  [Name in keyof K as K[Name] extends Reloadable ? Name : never]: K[Name];
}>;

/** The configuration of a running server: a reloadable key can be read nowhere but in its settings. */
export type ConfigOf<K extends Keys> = FixedOf<K> & { readonly settings: Settings<SettingsOf<K>> };
