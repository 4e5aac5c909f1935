import { isDeepStrictEqual } from 'node:util';
import type { FastifyRequest } from 'fastify';
import type { ImportedLine } from '../../contract/device.ts';
import type { ExistingPolicy } from '../../contract/device-transfer.ts';
import { tagsMax } from '../../core/bounds.ts';
import { deviceIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Device, DeviceChange, DevicePut, PutOutcome } from '../../domain/devices/device.ts';
import { descriptionOf } from '../../domain/devices/device-fields.ts';
import { digestOf, newDevice } from '../../domain/devices/new-device.ts';
import type { Shards } from '../../domain/shard.ts';
import { type BulkWrites, onEachShard } from '../request/bulk-writes.ts';
import type { Turn } from '../request/turn.ts';
import {
  BadLine,
  type BodyLine,
  bodyLines,
  csvLine,
  csvReader,
  type DeviceLine,
  type LineReader,
  readJsonLine,
} from './device-lines.ts';

/** Lines per write, which takes some milliseconds of this thread and of each shard. */
const linesPerWrite = 200;
/** Lines, and bytes of them, parsed at once: a millisecond or two of this thread, also of those that are no device. */
const linesPerTurn = 50;
const bytesPerTurn = 16_384;
/** Maximum line length, ten times that of a device with a long name and many long tags. */
const lineBytesMax = 65_536;

export interface ImportOptions {
  fleetId: string;
  onExisting: ExistingPolicy;
  /** Skips earlier lines, which an earlier import has stored. */
  fromLine: number;
  /** Accepts lines that an earlier import stored without its answer having arrived. */
  isResumed: boolean;
  /** Lines that are no device, after which the import ends. */
  badLinesMax: number;
}

/** Every member, empty where it has no value. */
type LineAnswer = Required<ImportedLine>;

const answerColumns = ['line', 'device_id', 'result', 'device_secret', 'error', 'msg'] as const;

function answerText(answer: LineAnswer, isCsv: boolean): string {
  if (isCsv) return csvLine(answerColumns.map((column) => String(answer[column])));
  const filled = answerColumns.filter((column) => answer[column] !== '');
  return `${JSON.stringify(Object.fromEntries(filled.map((column) => [column, answer[column]])))}\n`;
}

const emptyAnswer = { device_id: '', device_secret: '', error: '', msg: '' };

function refused(line: number, error: string, msg: string): LineAnswer {
  return { ...emptyAnswer, line, result: 'error', error, msg };
}

/** Says where and why an import ended before the end of its body. */
function ended(line: number, cause: string): LineAnswer {
  return refused(line, 'import_ended', `The import ended here, ${cause}. No later line was read.`);
}

interface RunningImport extends ImportOptions {
  onAnswers: (results: LineAnswer['result'][]) => void;
  signal: AbortSignal;
  turn: Turn;
}

interface Put extends DevicePut {
  line: number;
  /** Empty unless the secret was generated here. */
  generatedSecret: string;
}

function putOf(line: number, input: DeviceLine, { fleetId, onExisting }: ImportOptions): Put {
  const { device_id: id, enabled, secret, secret_digest: digestText, ...description } = input;
  const fresh = newDevice(fleetId, description, id);
  const digest =
    secret !== undefined
      ? digestOf(secret)
      : digestText !== undefined
        ? Buffer.from(digestText, 'hex')
        : undefined;
  const change: DeviceChange = {
    ...description,
    ...(enabled !== undefined && { enabled }),
    ...(digest !== undefined && { secretDigests: [digest] }),
  };
  const device: Device = { ...fresh.device, ...change };
  const generatedSecret = digest === undefined ? fresh.secret : '';
  return { line, device, change: onExisting === 'update' ? change : undefined, generatedSecret };
}

function answerOf(
  { line, device, generatedSecret }: Put,
  outcome: PutOutcome,
  { onExisting }: ImportOptions,
): LineAnswer {
  const device_id = deviceIdOf(device.device);
  switch (outcome) {
    case 'created':
      return { ...emptyAnswer, line, device_id, result: 'created', device_secret: generatedSecret };
    case 'changed':
      return { ...emptyAnswer, line, device_id, result: 'updated' };
    case 'unchanged':
      return { ...emptyAnswer, line, device_id, result: 'unchanged' };
    case 'exists':
      if (onExisting === 'skip') return { ...emptyAnswer, line, device_id, result: 'skipped' };
      return { ...refused(line, 'already_exists', 'This id is taken.'), device_id };
    default:
      return { ...refused(line, outcome, `A device has ${tagsMax} tags at most.`), device_id };
  }
}

/** The fields of a device that a line can set. */
function identityOf(device: Device): unknown {
  const { enabled, secretDigests } = device;
  const digests = secretDigests.map((digest) => Buffer.from(digest).toString('hex'));
  return { enabled, digests, ...descriptionOf(device) };
}

/** Imports the devices of a body, one per line. Answers each line once its device is on disk. */
export class DeviceImport {
  readonly #shards: Shards;
  readonly #registry: Registry;
  readonly #bulkWrites: BulkWrites;

  constructor({
    shards,
    registry,
    bulkWrites,
  }: { shards: Shards; registry: Registry; bulkWrites: BulkWrites }) {
    this.#shards = shards;
    this.#bulkWrites = bulkWrites;
    this.#registry = registry;
  }

  /** Reads the body as fast as the client takes the answers. */
  answer(
    { audited: { about }, body, headers, turn }: FastifyRequest,
    options: ImportOptions,
  ): { type: string; lines(signal: AbortSignal): AsyncIterable<string> } {
    const type = headers['content-type']?.startsWith('text/csv') ? 'text/csv' : 'application/x-ndjson';
    about.on_existing = options.onExisting;
    const onAnswers = (results: LineAnswer['result'][]): void => {
      for (const result of results) about[result] = Number(about[result] ?? 0) + 1;
    };
    const isCsv = type === 'text/csv';
    return {
      type: `${type}; charset=utf-8`,
      lines: (signal) =>
        this.#lines(body as AsyncIterable<Buffer>, isCsv, { ...options, onAnswers, signal, turn }),
    };
  }

  async *#lines(body: AsyncIterable<Buffer>, isCsv: boolean, options: RunningImport): AsyncGenerator<string> {
    const { onAnswers, signal, turn } = options;
    let badLinesLeft = options.badLinesMax;
    let reader: LineReader | undefined = isCsv ? undefined : readJsonLine;
    if (isCsv) yield csvLine(answerColumns);
    for await (const batch of bodyLines(body, lineBytesMax)) {
      // Also where there is nothing to store: a body may consist of empty lines.
      await turn();
      signal.throwIfAborted();
      const header = reader === undefined ? batch.shift() : undefined;
      if (header !== undefined) {
        try {
          reader = csvReader(header.bytes ?? Buffer.alloc(0));
        } catch (error) {
          if (!(error instanceof BadLine)) throw error;
          onAnswers(['error']);
          yield answerText(refused(1, 'invalid_line', error.message), isCsv);
          return;
        }
      }
      if (reader === undefined) continue;
      const wanted = batch.filter(({ number, bytes }) => number >= options.fromLine && bytes?.length !== 0);
      for (let start = 0; start < wanted.length; start += linesPerWrite) {
        signal.throwIfAborted();
        // It may be deleted meanwhile.
        this.#registry.fleet(options.fleetId);
        const answers = await this.#store(wanted.slice(start, start + linesPerWrite), reader, {
          ...options,
          badLinesMax: badLinesLeft,
        });
        badLinesLeft -= answers.filter(({ error }) => error === 'invalid_line').length;
        onAnswers(answers.map(({ result }) => result));
        yield answers.map((answer) => answerText(answer, isCsv)).join('');
        if (badLinesLeft > 0) continue;
        const cause = `after ${options.badLinesMax} bad lines (importBadLinesMax)`;
        yield answerText(ended(answers.at(-1)?.line ?? 0, cause), isCsv);
        return;
      }
      const last = batch.at(-1);
      if (last !== undefined && last.bytes === undefined) {
        yield answerText(ended(last.number, `at a line of more than ${lineBytesMax} bytes`), isCsv);
        return;
      }
    }
  }

  /** Resolves to true if the stored device equals its line; never if the secret was generated here. */
  async #matchesLine({ device, generatedSecret }: Put): Promise<boolean> {
    if (generatedSecret !== '') return false;
    const found = await this.#shards.of(device.device).devices.get(device.device);
    return found !== undefined && isDeepStrictEqual(identityOf(found), identityOf(device));
  }

  /** Stores lines up to the last bad one that is allowed. */
  async #store(lines: readonly BodyLine[], read: LineReader, options: RunningImport): Promise<LineAnswer[]> {
    const answers: LineAnswer[] = [];
    const puts: Put[] = [];
    let left = { lines: 0, bytes: 0 };
    for (const { number, bytes } of lines) {
      if (answers.length === options.badLinesMax) break;
      if (left.lines <= 0 || left.bytes <= 0) {
        await options.turn();
        left = { lines: linesPerTurn, bytes: bytesPerTurn };
      }
      left.lines -= 1;
      left.bytes -= bytes?.length ?? 0;
      try {
        if (bytes === undefined) throw new BadLine(`The line is longer than ${lineBytesMax} bytes.`);
        puts.push(putOf(number, read(bytes), options));
      } catch (error) {
        if (!(error instanceof BadLine)) throw error;
        answers.push(refused(number, 'invalid_line', error.message));
      }
    }
    const outcomes = await this.#bulkWrites.run(() =>
      onEachShard(
        this.#shards,
        puts,
        ({ device }) => device.device,
        (shard, own) => shard.devices.put(own.map(({ device, change }) => ({ device, change }))),
      ),
    );
    const mayBeDone = options.isResumed && options.onExisting === 'error';
    for (const [index, put] of puts.entries()) {
      const outcome = outcomes[index] ?? 'not_found';
      const isDone = outcome === 'exists' && mayBeDone && (await this.#matchesLine(put));
      answers.push(answerOf(put, isDone ? 'unchanged' : outcome, options));
    }
    return answers.sort((a, b) => a.line - b.line);
  }
}
