import { expect, it, vi } from 'vitest';
import { print, table } from '../../src/cli/output.ts';

const hostile = 'a\u001b[2Jb\u009b2Jc\u202ed\u2066e';

it('nothing of a name moves the cursor of a terminal, or turns its text round', () => {
  const written: unknown[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(text) > 0);
  print({}, {}, `Device ${hostile}\n\tis there`);
  write.mockRestore();
  expect(written).toEqual(['Device a\u{fffd}[2Jb\u{fffd}2Jc\u{fffd}d\u{fffd}e\n\tis there\n']);
  for (const character of ['\u001b', '\u009b', '\u202e', '\u2066']) {
    expect(table(['name'], [[hostile]])).not.toContain(character);
  }
});
