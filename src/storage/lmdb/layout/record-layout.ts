import { schemaNamePattern } from '../../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../../core/uuid.ts';
import type { Fields, KeptField, RecordOf } from '../../../domain/fields.ts';

type Placed = readonly [name: string, field: KeptField, at: number, length: number];

/** Bytes of a field of fixed length; undefined for one without. */
function lengthOf({ kind, max, isOptional }: KeptField): number | undefined {
  if (kind === 'uuid') return uuidBytesLength;
  if (kind === 'word') return 1;
  if (kind === 'time') return 6;
  if (kind === 'count') return Math.ceil(Math.log2(max + (isOptional ? 2 : 1)) / 8);
  return undefined;
}

/** Methods for whole numbers of these lengths, which cost less than those that are told a length. */
const ownMethods: Readonly<Record<number, string>> = { 1: 'UInt8', 2: 'UInt16BE', 4: 'UInt32BE' };

/** Program text that calls one, with its arguments. */
function numberText(verb: 'read' | 'write', length: number, ...given: readonly unknown[]): string {
  const own = ownMethods[length];
  return `bytes.${verb}${own ?? 'UIntBE'}(${[...given, ...(own === undefined ? [length] : [])].join(', ')})`;
}

/** Program text that reads a field of fixed length from `bytes`, as a view if it is more than a number. */
function readText([name, { kind, isOptional }, at, length]: Placed): string {
  if (kind === 'uuid') return `bytes.subarray(${at}, ${at + length})`;
  if (kind === 'word') return `words.${name}[bytes.readUInt8(${at}) - 1]`;
  const number = numberText('read', length, at);
  if (!isOptional) return number;
  return kind === 'time' ? `${number} || undefined` : `${number} === 0 ? undefined : ${number} - 1`;
}

/** Program text that writes one to `bytes`. */
function writeText([name, { kind, max, isOptional }, at, length]: Placed): string {
  if (kind === 'uuid') return `bytes.set(${name}, ${at});`;
  if (kind === 'word') return `bytes.writeUInt8(words.${name}.indexOf(${name}) + 1, ${at});`;
  const value = kind === 'time' ? name : `Math.min(${name}, ${max})${isOptional ? ' + 1' : ''}`;
  return `${numberText('write', length, isOptional ? `${name} === undefined ? 0 : ${value}` : value, at)};`;
}

/** Bytes that say the length of a field without a fixed one: a character of a text takes four at most. */
function prefixOf({ kind, max }: KeptField): number {
  return kind === 'text' && 4 * max > 0xff ? 2 : 1;
}

/** Program text that reads a field without a fixed length from between two places. */
function readBetween({ kind, isOptional }: KeptField, from: string, to: string): string {
  if (kind === 'name') return `bytes.toString('latin1', ${from}, ${to})`;
  const text = `bytes.toString('utf8', ${from}, ${to})`;
  if (kind === 'text') return isOptional ? `${text} || undefined` : text;
  return `bytes.subarray(${from}, ${to})`;
}

/**
 * The bytes of a record, from its fields in their order: first those of fixed length, with numbers big-endian; then
 * those without, each behind its length in a byte, or two for a long text, but for the last one. An absent time is 0, an
 * absent text empty, a count that may be absent is stored plus one, and a word as its number among its words, from 1 on.
 *
 * Readers and writers are compiled once, as the checks of schemas are: a loop over the fields took half as long again to
 * write a mail.
 */
export class RecordLayout<F extends Fields> {
  /** Encodes a record; its counts stay at their largest value. */
  readonly encode: (record: RecordOf<F>) => Buffer;
  /** Copies the bytes once; members are views of the copy. @throws Error for a damaged record. */
  readonly decode: (bytes: Buffer) => RecordOf<F>;
  /** Likewise, but for the last field of those without a fixed length. */
  readonly decodeFront: (bytes: Buffer) => Omit<RecordOf<F>, 'payload'>;
  /** @throws Error for a record too short to be one. */
  readonly check: (bytes: Buffer) => void;
  /** These read single fields without a check, and write those of fixed length in place. */
  readonly read: { readonly [N in keyof F]: (bytes: Buffer) => RecordOf<F>[N] };
  readonly write: { readonly [N in keyof F]: (bytes: Buffer, value: RecordOf<F>[N]) => void };
  /** Bytes of the fields of fixed length. */
  readonly fixedBytes: number;
  /** Offset of the last field of those without a fixed length. */
  readonly restAt: (bytes: Buffer) => number;
  readonly #fields: F;
  readonly #fixed: Placed[] = [];
  /** Fields without a fixed length. */
  readonly #others: (readonly [name: string, field: KeptField])[] = [];
  readonly #words: Readonly<Record<string, readonly string[]>>;
  readonly #ends: string;
  readonly #checks: readonly ((bytes: Buffer) => boolean)[];

  /** `what` names a record, for errors. */
  constructor(what: string, fields: F) {
    this.#fields = fields;
    let at = 0;
    for (const [name, field] of Object.entries(fields)) {
      const length = lengthOf(field);
      if (length === undefined) this.#others.push([name, field]);
      else this.#fixed.push([name, field, at, length]);
      at += length ?? 0;
    }
    this.fixedBytes = at;
    this.#words = Object.fromEntries(Object.entries(fields).map(([name, { words }]) => [name, words]));
    const prefixes = this.#others.slice(0, -1).map(([, field]) => prefixOf(field));
    const ends = prefixes.map(
      (length, n) => `const at${n + 1} = at${n} + ${length} + ${numberText('read', length, `at${n}`)};`,
    );
    this.#ends = `const at0 = ${at}; ${ends.join(' ')} const restAt = at${prefixes.length};`;
    this.restAt = this.#compile('bytes', `${this.#ends} return restAt;`);
    const words = this.#fixed.filter(([, { kind }]) => kind === 'word').map(readText);
    const shortest = prefixes.reduce((sum, length) => sum + length, at);
    const isDamaged = [`bytes.length < ${shortest}`, ...words.map((word) => `!${word}`)].join(' || ');
    this.check = this.#compile(
      'bytes',
      `if (!(${isDamaged})) { ${this.#ends} if (bytes.length >= restAt) return; }
       throw new Error('a ${what} is damaged');`,
    );
    const fixed = this.#fixed.map((one) => [one[0], readText(one)] as const);
    const others = this.#others.map(([name, field], n) => {
      const length = prefixes[n];
      const [from, to] =
        length === undefined ? ['restAt', 'bytes.length'] : [`at${n} + ${length}`, `at${n + 1}`];
      return [name, readBetween(field, from, to)] as const;
    });
    this.read = Object.fromEntries([
      ...fixed.map(([name, text]) => [name, this.#compile('bytes', `return ${text};`)]),
      ...others.map(([name, text]) => [name, this.#compile('bytes', `${this.#ends} return ${text};`)]),
    ]);
    this.#checks = Object.entries(fields).flatMap(([name, { kind, max }]) => {
      const read = this.read[name] as (bytes: Buffer) => unknown;
      if (kind === 'uuid') return [(bytes: Buffer) => isUuid(read(bytes) as Buffer)];
      if (kind === 'text')
        return [(bytes: Buffer) => Array.from((read(bytes) as string | undefined) ?? '').length <= max];
      return kind === 'name' ? [(bytes: Buffer) => schemaNamePattern.test(read(bytes) as string)] : [];
    });
    this.write = Object.fromEntries(
      this.#fixed.map((one) => [one[0], this.#compile(`bytes, ${one[0]}`, writeText(one))]),
    ) as unknown as typeof this.write;
    const decoder = (
      end: string,
      members: readonly (readonly [string, string])[],
    ): string => `check(bytes); ${this.#ends}
      bytes = Buffer.from(bytes.subarray(0, ${end}));
      return { ${members.map(([name, text]) => `${name}: ${text}`).join(', ')} };`;
    this.decode = this.#compile('bytes', decoder('bytes.length', [...fixed, ...others]));
    this.decodeFront = this.#compile('bytes', decoder('restAt', [...fixed, ...others.slice(0, -1)]));
    this.encode = this.#compile(`{ ${Object.keys(fields).join(', ')} }`, this.#encodeText());
  }

  /** Encodes a record of which these fields are in an object of their own: to bring both into one would cost more. */
  encoder<E>(part: Fields): E {
    const rest = Object.keys(this.#fields).filter((name) => !(name in part));
    return this.#compile(`{ ${Object.keys(part).join(', ')} }, { ${rest.join(', ')} }`, this.#encodeText());
  }

  /** Encodes a record from the bytes of one of another layout, and an object with the fields that that has not. */
  encoderFrom<E>(from: { read: Readonly<Record<string, unknown>> }, own: readonly string[]): E {
    const taken = Object.keys(this.#fields).filter((name) => !own.includes(name));
    const reads = taken.map((name) => `const ${name} = from.${name}(source);`).join(' ');
    return this.#compile(`source, { ${own.join(', ')} }`, `${reads} ${this.#encodeText()}`, from.read);
  }

  #encodeText(): string {
    const last = this.#others.length - 1;
    const lengths: (string | number)[] = [this.fixedBytes];
    const texts: string[] = [];
    for (const [n, [name, field]] of this.#others.entries()) {
      const prefix = n < last ? prefixOf(field) : 0;
      const isText = field.kind === 'text';
      const value = isText && field.isOptional ? `(${name} ?? '')` : name;
      lengths.push(prefix, isText ? `Buffer.byteLength(${value})` : `${value}.length`);
      if (field.kind === 'bytes') texts.push(`bytes.set(${name}, at);`);
      else texts.push(`length = bytes.write(${value}, at + ${prefix}, '${isText ? 'utf8' : 'latin1'}');`);
      if (n < last) texts.push(`${numberText('write', prefix, 'length', 'at')}; at += ${prefix} + length;`);
    }
    return `const bytes = Buffer.allocUnsafe(${lengths.join(' + ')}); let at = ${this.fixedBytes}; let length;
      ${this.#fixed.map(writeText).join(' ')} ${texts.join(' ')} return bytes;`;
  }

  /** True if the bytes can be such a record, whatever those of a field of bytes are. */
  isRecord(bytes: Buffer): boolean {
    try {
      this.check(bytes);
    } catch {
      return false;
    }
    return this.#checks.every((isSound) => isSound(bytes));
  }

  #compile<T>(parameters: string, body: string, from?: object): T {
    const text = `return (${parameters}) => { ${body} };`;
    return new Function('words', 'check', 'from', text)(this.#words, this.check, from) as T;
  }
}
