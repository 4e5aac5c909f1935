import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ApiError } from '../../../src/core/errors.ts';
import { parseSync } from '../../../src/device-api/sync/sync-body.ts';

const sound = Buffer.from(
  JSON.stringify({
    records: [
      { kind: 'datapoint', schema: 'reading', payload: { a: [1, { b: '}"\\' }], é: null } },
      { kind: 'message', schema: 'note', payload: {} },
      { kind: 'message', schema: 'note' },
    ],
    queue: 'q',
    seq: 7,
    settle: [{ id: '0190a5c8-7f3b-7000-8000-000000000000', verb: 'ack', reply: { done: true } }],
    mail: { max: 2, bytes: 100 },
  }),
);

const piece = fc.constantFrom(
  ...['{', '}', '[', ']', '"', '\\', ',', ':', ' ', '\n', '0', 'null', '{}', '[]', '""', '\\"', '\\u0070'],
  ...['"payload":', '"records":', '"reply":', '"payload":1,', ',"records":[{"payload":2}]', '\ud83d\ude00'],
);
const edit = fc.record({
  at: fc.nat({ max: sound.length }),
  removed: fc.nat({ max: 12 }),
  added: fc.oneof(piece, fc.constant('')).map((text) => Buffer.from(text)),
});

it('D11, D29: of whatever is sent the bytes of each payload and reply are those of its value, or all is refused', () => {
  let taken = 0;
  fc.assert(
    fc.property(fc.array(edit, { maxLength: 3 }), (edits) => {
      let bytes: Buffer = sound;
      for (const { at, removed, added } of edits) {
        bytes = Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)]);
      }
      let body: ReturnType<typeof parseSync>;
      try {
        body = parseSync(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(ApiError);
        return;
      }
      taken += 1;
      const expectMember = (item: unknown, name: string, found: Buffer): void => {
        const isObject = typeof item === 'object' && item !== null && !Array.isArray(item);
        if (isObject && Object.hasOwn(item, name)) {
          expect(JSON.parse(found.toString())).toEqual((item as Record<string, unknown>)[name]);
        } else expect(found).toHaveLength(0);
      };
      for (const [index, item] of body.records.entries())
        expectMember(item, 'payload', body.payloadOf(index));
      for (const [index, item] of body.settlements.entries())
        expectMember(item, 'reply', body.replyOf(index));
    }),
    { numRuns: 20_000 },
  );
  expect(taken).toBeGreaterThan(500);
});
