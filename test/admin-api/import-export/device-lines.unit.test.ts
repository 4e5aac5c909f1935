import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  BadLine,
  type BodyLine,
  bodyLines,
  cellOf,
  csvLine,
  csvReader,
  linesSplitMax,
  readJsonLine,
} from '../../../src/admin-api/import-export/device-lines.ts';

async function linesOf(chunks: readonly Buffer[], lineBytesMax: number): Promise<BodyLine[]> {
  const arriving = (async function* () {
    yield* chunks;
  })();
  const lines: BodyLine[] = [];
  for await (const some of bodyLines(arriving, lineBytesMax)) lines.push(...some);
  return lines;
}

it('lines are the same wherever a body is cut, and one that is too long is the last, without its bytes', async () => {
  const text = fc.stringMatching(/^[ab\r\n]{0,60}$/);
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(60)), async (body, cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), body.length];
      const chunks = places.slice(1).map((end, index) => Buffer.from(body.slice(places[index], end)));
      const expected = body
        .replace(/\n$/, '')
        .split('\n')
        .map((line, index) => ({
          number: index + 1,
          text: line.length > 10 ? undefined : line.replace(/\r$/, ''),
        }));
      const tooLongAt = expected.findIndex(({ text }) => text === undefined);
      if (tooLongAt >= 0) expected.splice(tooLongAt + 1);
      const found = await linesOf(chunks, 10);
      const texts = found.map(({ number, bytes }) => ({ number, text: bytes?.toString() }));
      expect(texts).toEqual(body === '' ? [] : expected);
    }),
  );
});

it('a body of empty lines comes in pieces that leave others their turn', async () => {
  const chunk = Buffer.alloc(65_536, '\n');
  const sizes: number[] = [];
  const arriving = (async function* () {
    yield* [chunk, Buffer.from('begun'), chunk];
  })();
  for await (const some of bodyLines(arriving, 10)) sizes.push(some.length);
  expect(Math.max(...sizes)).toBe(linesSplitMax);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(2 * chunk.length);
});

function refusalOf(read: () => unknown): string {
  try {
    return `taken: ${JSON.stringify(read())}`;
  } catch (error) {
    if (error instanceof BadLine) return error.message;
    throw error;
  }
}

it.each([
  ['{"device_id":', /not JSON/],
  ['["DEVICE0001"]', /not a JSON object/],
  ['{"device_id":"DEVICE0001","colour":"red"}', /^Unknown field. Known fields: device_id/],
  ['{"device_id":"no id"}', /^device_id /],
  ['{"device_id":"DEVICE0001","tags":"hall"}', /^tags /],
])('a line that is no device is refused, its text not repeated: %s', (line, message) => {
  const refusal = refusalOf(() => readJsonLine(Buffer.from(line)));
  expect(refusal).toMatch(message);
  expect(refusal).not.toMatch(/colour|no id|hall/);
});

it('bytes that are no UTF-8 are refused', () => {
  expect(refusalOf(() => readJsonLine(Buffer.from([0x22, 0xff, 0x22])))).toBe('The line is not UTF-8.');
});

it('an exported line is imported as it is, and what an export adds is ignored', () => {
  const line = {
    fleet_id: 'FLEET001',
    device_id: 'DEVICE0001',
    created_at: '2026-01-01T00:00:00Z',
    tags: ['a'],
  };
  expect(readJsonLine(Buffer.from(JSON.stringify(line)))).toEqual({ device_id: 'DEVICE0001', tags: ['a'] });
});

it('any name and any tags come through a table, and no name is a formula in a spreadsheet', () => {
  const name = fc.stringMatching(/^['=+\-@",;a é]{0,12}$/);
  const tags = fc.uniqueArray(fc.stringMatching(/^[[=+\-@",;'a]{1,6}$/), { minLength: 1, maxLength: 4 });
  const read = csvReader(Buffer.from('device_id,name,tags'));
  fc.assert(
    fc.property(name, tags, (ofDevice, ofTags) => {
      const cells = ['DEVICE0001', cellOf(ofDevice), cellOf(ofTags)];
      for (const cell of cells) expect(cell).not.toMatch(/^[=+\-@]/);
      expect(read(Buffer.from(csvLine(cells).trimEnd()))).toEqual({
        device_id: 'DEVICE0001',
        ...(ofDevice !== '' && { name: ofDevice }),
        tags: ofTags,
      });
    }),
  );
});

it.each([
  ['device_id,device_id', 'DEVICE0001,DEVICE0001', /each once/],
  ['device_id,colour', 'DEVICE0001,red', /each once/],
  ['device_id', 'DEVICE0001,more', /more fields than there are columns/],
  ['device_id,name', 'DEVICE0001,"open', /quotes of the line do not match/],
  ['device_id,tags', 'DEVICE0001,[hall', /not one/],
  ['device_id,enabled', 'DEVICE0001,perhaps', /^enabled /],
])('a table with the columns %s and the line %s is refused', (header, line, message) => {
  expect(refusalOf(() => csvReader(Buffer.from(header))(Buffer.from(line)))).toMatch(message);
});
