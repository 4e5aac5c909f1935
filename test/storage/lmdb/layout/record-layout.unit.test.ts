import fc from 'fast-check';
import { expect, it } from 'vitest';
import { field } from '../../../../src/domain/fields.ts';
import { RecordLayout } from '../../../../src/storage/lmdb/layout/record-layout.ts';

const layout = new RecordLayout('note', {
  triesMax: field.optional(field.count(9)),
  title: field.text(20),
  place: field.optional(field.text(64)),
  name: field.name,
  payload: field.bytes,
});
const note = { triesMax: 3, title: 'Pümpe', place: 'roof', name: 'water', payload: Buffer.from('{}') };

it('texts of any characters, up to as many as they may have, are read as they were written', () => {
  const text = (maxLength: number) => fc.string({ unit: 'binary', maxLength });
  const place = text(64).map((some) => some || undefined);
  fc.assert(
    fc.property(text(20), place, fc.stringMatching(/^[a-z]{1,9}$/), (title, place, name) => {
      const bytes = layout.encode({ ...note, title, place, name });
      expect(layout.decode(bytes)).toEqual({ ...note, title, place, name });
      expect([layout.read.title(bytes), layout.read.place(bytes)]).toEqual([title, place]);
      expect(layout.isRecord(bytes)).toBe(true);
    }),
  );
  const longest = { ...note, title: '\u{10ffff}'.repeat(20), place: '\u{10ffff}'.repeat(64) };
  expect(layout.decode(layout.encode(longest))).toEqual(longest);
});

it('a text is behind its length in one byte, or in two where it may have more than 255', () => {
  const bytes = layout.encode(note);
  expect(bytes.toString('latin1')).toBe('\x04\x06P\xc3\xbcmpe\x00\x04roof\x05water{}');
});

it('a record that is cut off within its texts, or has a longer one than it may have, is refused', () => {
  const whole = layout.encode(note);
  for (let length = 0; length < layout.restAt(whole); length += 1) {
    expect(layout.isRecord(whole.subarray(0, length))).toBe(false);
    expect(() => layout.decode(whole.subarray(0, length))).toThrow();
  }
  expect(layout.isRecord(layout.encode({ ...note, title: 'a'.repeat(21) }))).toBe(false);
});

it('a text may be the last field', () => {
  const titled = new RecordLayout('title', { id: field.count(9), title: field.text(20) });
  expect(titled.decode(titled.encode({ id: 1, title: 'Pümpe' }))).toEqual({ id: 1, title: 'Pümpe' });
});
