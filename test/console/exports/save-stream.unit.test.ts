import { expect, it } from 'vitest';
import { HeldSink, type SavedStream, saveLines } from '../../../src/console/exports/save-stream.ts';

/** An answer that comes in these pieces. */
function answerOf(pieces: readonly (string | Uint8Array)[], failure?: Error): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces)
        controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
      if (failure === undefined) controller.close();
      else setTimeout(() => controller.error(failure));
    },
  });
  return new Response(body);
}

async function saved(response: Response, bytesMax: number): Promise<{ text: string; last: SavedStream }> {
  let content = new Blob([]);
  let last: SavedStream = { bytes: 0, lines: 0, isCut: false };
  const sink = new HeldSink((blob) => {
    content = blob;
  }, bytesMax);
  await saveLines(response, sink, (progress) => {
    last = progress;
  });
  return { text: await content.text(), last };
}

it('lines are saved as they come, but for those with nothing in them', async () => {
  const [first = new Uint8Array(), second = new Uint8Array()] = ((bytes: Uint8Array) => [
    bytes.subarray(0, 8),
    bytes.subarray(8),
  ])(new TextEncoder().encode('{"a":"é"}\n'));
  const { text, last } = await saved(answerOf([first, second, '\n', '\n{"b":1}\n\n', '{"c"', ':2}']), 1_000);
  expect(text).toBe('{"a":"é"}\n{"b":1}\n{"c":2}');
  expect(last).toEqual({ bytes: 26, lines: 2, isCut: false });
});

it('at the bound the file ends with the last whole line before it', async () => {
  const { text, last } = await saved(answerOf(['aaaa\nbb', 'bb\ncc', 'cc\ndddd\n']), 12);
  expect(text).toBe('aaaa\nbbbb\n');
  expect(last).toEqual({ bytes: 10, lines: 2, isCut: true });
});

it('of an answer that breaks off nothing is saved', async () => {
  let isSaved = false;
  const sink = new HeldSink(() => {
    isSaved = true;
  });
  const broken = saveLines(answerOf(['aaaa\n'], new TypeError('network error')), sink, () => undefined);
  await expect(broken).rejects.toMatchObject({ code: 'stream_broken' });
  expect(isSaved).toBe(false);
});
