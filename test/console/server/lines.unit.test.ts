import { expect, it } from 'vitest';
import { linesOf } from '../../../src/console/server/lines.ts';

/** An answer whose bytes come in these chunks. */
const answerOf = (...chunks: Uint8Array[]): Response =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    }),
  );

async function all(answer: Response): Promise<string[]> {
  const lines: string[] = [];
  for await (const some of linesOf(answer)) lines.push(...some);
  return lines;
}

it('lines are the same wherever the bytes are cut, in the middle of a character too', async () => {
  const bytes = Buffer.from('{"a":"é"}\n\n{"b":"😀"}\nlast');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const lines = await all(answerOf(bytes.subarray(0, cut), bytes.subarray(cut)));
    expect(lines).toEqual(['{"a":"é"}', '{"b":"😀"}', 'last']);
  }
});

it('an answer without a body has none', async () => {
  expect(await all(new Response(null))).toEqual([]);
});

it('a line without an end is given up, and not kept for ever', async () => {
  const chunk = Buffer.alloc(600_000, 'a');
  await expect(all(answerOf(chunk, chunk))).rejects.toThrow('too long');
});
