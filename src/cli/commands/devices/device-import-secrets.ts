import { createReadStream } from 'node:fs';
import { parse } from 'csv-parse/sync';

/** What became of one line, as far as the command looks at it. */
export interface LineAnswer {
  line: number;
  device_id?: string;
  result: string;
  error?: string;
}

/** Lines of one write of the server, which takes one write after another. */
const linesPerWrite = 500;

/**
 * Devices that an import may have made before it ended early, and whose secret was in an answer that never arrived:
 * nobody knows it.
 */
export class LostSecrets {
  readonly #file: string;
  readonly #deviceIds = new Map<number, string>();
  /** Behind a line that is only made now, no earlier import has been. */
  #lastLine = Number.MAX_SAFE_INTEGER;

  constructor(file: string) {
    this.#file = file;
  }

  note({ line, device_id: deviceId = '', result, error }: LineAnswer): void {
    if (result === 'created') this.#lastLine = Math.min(this.#lastLine, line + linesPerWrite);
    const wasThere = error === 'already_exists' || ['skipped', 'unchanged', 'updated'].includes(result);
    if (wasThere && line < this.#lastLine) this.#deviceIds.set(line, deviceId);
  }

  /** Those of lines that gave no secret of their own. */
  async deviceIds(): Promise<string[]> {
    if (this.#deviceIds.size === 0) return [];
    const isCsv = this.#file.endsWith('.csv');
    const found: string[] = [];
    let number = 0;
    let columns: string[] = [];
    for await (const line of linesOf(this.#file)) {
      number += 1;
      if (isCsv && number === 1) columns = cellsOf(line).map((cell) => cell.replace(/^\ufeff/, '').trim());
      const deviceId = this.#deviceIds.get(number);
      if (deviceId === undefined) continue;
      const given = isCsv ? fieldsOf(line, columns) : (JSON.parse(line) as Record<string, unknown>);
      if (!given.secret && !given.secret_digest) found.push(deviceId);
    }
    return found;
  }
}

function cellsOf(line: string): string[] {
  const [cells = []] = parse(line, { relax_column_count: true }) as string[][];
  return cells;
}

function fieldsOf(line: string, columns: readonly string[]): Record<string, unknown> {
  const cells = cellsOf(line);
  return Object.fromEntries(columns.map((column, index) => [column, cells[index]]));
}

/** As the server counts them: ended by a line feed and nothing else. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of createReadStream(file, 'utf8')) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest;
}
