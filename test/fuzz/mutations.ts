import fc from 'fast-check';

/** Cuts and edits of the bytes of a conversation, as fast-check makes them. */
export interface Edit {
  at: number;
  removed: number;
  added: Buffer;
}

/** One conversation: which requests follow each other, how they are spoilt, and where the writes are cut. */
export interface Conversation {
  /** Indices into the valid requests. */
  requests: number[];
  /** Lines put behind the request line of the first request. */
  lines: string[];
  /** Replaces the request line of the first request. */
  requestLine: string | undefined;
  /** Rewrites the body of the first request as these chunk sizes, right or wrong. */
  chunkSizes: string[] | undefined;
  edits: Edit[];
  cuts: number[];
  ending: 'wait' | 'end' | 'reset';
}

const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PRI',
  'get',
  'P\tST',
  '',
];
const targets = [
  '/',
  '*',
  '/v1',
  '/v1/heartbeat',
  '/v1/datapoint/reading',
  '/v1/datapoint/%72eading',
  '/v1/datapoint/../msg/note',
  '/v1/msg/',
  '/v1/sync',
  '/v1/mailbox/next?shape=envelope&shape=',
  '/v1/mailbox/ack/0190a5c8-7f3b-7000-8000-000000000000',
  '/v1/mailbox/ack/%00',
  '/v1/events',
  'https://localhost/v1',
  `/${'a'.repeat(4_000)}`,
  '/\x00',
  '/\xff\xfe',
];
const versions = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/1.1 ', 'http/1.1', 'HTTP/11', ''];
const headerLines = [
  'Content-Length: 0',
  'Content-Length: 1',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Content-Length: 65537',
  'Content-Length : 5',
  'Content-Length:5\r\n ',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding:\tchunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding\x00: chunked',
  'Expect: 100-continue',
  'Connection: close',
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13',
  'Host: elsewhere',
  'Host:',
  'X-Fleet-ID: AAAAAAAA',
  'X-Device-ID: ',
  'X-Device-Secret: FOS-',
  'Idempotency-Key: nonsense',
  'Content-Type: text/plain',
  'Accept: text/html;q=0, */*;q=0',
  'X:',
  ': y',
  'no colon',
  `X-Long: ${'y'.repeat(4_200)}`,
  Array.from({ length: 110 }, (_, i) => `X-${i}: z`).join('\r\n'),
  'X: a\nY: b',
  'X: a\rY: b',
];
const pieces = [
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  ':',
  ' ',
  '\0',
  '%',
  '{',
  '}',
  '0\r\n\r\n',
  'GET / HTTP/1.1\r\n',
  '\xff',
];
const chunkSizes = [
  '0',
  '1',
  '5',
  '00',
  'a',
  'A;x=y',
  '-1',
  '0x5',
  'ffffffff',
  'fffffffffffffffff',
  '',
  'g',
  '10000',
  ' 5',
  '5 ',
];

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.nat(),
  removed: fc.nat({ max: 12 }),
  added: fc.oneof(
    fc.uint8Array({ maxLength: 16 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(...pieces, ...headerLines).map(latin1),
  ),
});

const requestLine = fc
  .tuple(
    fc.constantFrom(...methods),
    fc.constantFrom(' ', '  ', '\t', ''),
    fc.constantFrom(...targets),
    fc.constantFrom(...versions),
  )
  .map(([method, space, target, version]) => `${method}${space}${target} ${version}`);

/** Mostly nothing, so that what is spoilt elsewhere gets past the parser. */
function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

function seldomSome<T>(arbitrary: fc.Arbitrary<T>, maxLength: number): fc.Arbitrary<T[]> {
  const some = fc.array(arbitrary, { minLength: 1, maxLength });
  return fc.oneof({ weight: 2, arbitrary: fc.constant<T[]>([]) }, { weight: 1, arbitrary: some });
}

/** `requests` valid requests to choose from. */
export function conversations(requests: number): fc.Arbitrary<Conversation> {
  return fc.record({
    requests: fc.array(fc.nat({ max: requests - 1 }), { minLength: 1, maxLength: 5 }),
    lines: seldomSome(fc.constantFrom(...headerLines), 2),
    requestLine: seldom(requestLine),
    chunkSizes: seldom(fc.array(fc.constantFrom(...chunkSizes), { minLength: 1, maxLength: 4 })),
    edits: seldomSome(edit, 3),
    cuts: fc.array(fc.nat(), { maxLength: 8 }),
    ending: fc.constantFrom('wait', 'end', 'reset'),
  });
}

export function applyEdits(bytes: Buffer, edits: readonly Edit[]): Buffer {
  let edited = bytes;
  for (const { at, removed, added } of edits) {
    const from = at % (edited.length + 1);
    edited = Buffer.concat([edited.subarray(0, from), added, edited.subarray(from + removed)]);
  }
  return edited;
}

/** The bytes of a conversation over these valid requests, in the pieces they are to be written in. */
export function piecesOf(conversation: Conversation, valid: readonly string[]): Buffer[] {
  const [first = '', ...rest] = conversation.requests.map((index) => valid[index] ?? '');
  const headEnd = first.indexOf('\r\n\r\n');
  const [line = '', ...lines] = first.slice(0, headEnd).split('\r\n');
  const body = first.slice(headEnd + 4);
  let kept = lines;
  let content = body;
  if (conversation.chunkSizes !== undefined) {
    kept = lines.filter((one) => !one.startsWith('Content-Length'));
    kept.push('Transfer-Encoding: chunked');
    content = conversation.chunkSizes.map((size) => `${size}\r\n${body}\r\n`).join('');
    content += '0\r\n\r\n';
  }
  const head = [conversation.requestLine ?? line, ...conversation.lines, ...kept].join('\r\n');
  const bytes = applyEdits(latin1(`${head}\r\n\r\n${content}${rest.join('')}`), conversation.edits);
  const ends = [...new Set(conversation.cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...ends].map((start, index) => bytes.subarray(start, ends[index] ?? bytes.length));
}
