/** A line of a record is its payload of 64 KiB and what is around it: a longer one is none of ours. */
const lineLengthMax = 1_048_576;

/** Lines of an answer, those that came at once together. @throws Error for a line that does not end. */
export async function* linesOf({ body }: Response): AsyncGenerator<string[]> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (done ? '' : decoder.decode(value, { stream: true }))).split('\n');
    rest = lines.pop() ?? '';
    if (done && rest !== '') lines.push(rest);
    if (rest.length > lineLengthMax) throw new Error('A line of the answer is too long.');
    const filled = lines.filter(Boolean);
    if (filled.length > 0) yield filled;
    if (done) return;
  }
}
