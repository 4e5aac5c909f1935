import type { FastifyInstance, FastifyRequest } from 'fastify';
import { KeyedMutex, sleep } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { hasMoreValues } from '../../core/json-shape.ts';
import { parseJson } from '../../declarations/schemas/payload.ts';

/** Maximum size of a JSON document; the default for all routes. */
export const documentBytesMax = 65_536;

/** Values of a larger document, which is parsed in one piece on the thread of all operators: some 30 ms at most. */
const valuesMax = 32_768;
/** A fleet's next larger document waits for so many times as long as the one before took to be parsed. */
const pauseFactor = 9;

/** Source texts of parsed documents. */
const texts = new WeakMap<object, Buffer>();

/** Returns the source text of a document that `takeDocuments` has parsed. */
export function bodyTextOf(document: object): Buffer {
  const text = texts.get(document);
  if (text === undefined) throw new Error('this document was not parsed from a body');
  return text;
}

/** Parses documents beyond the usual size, each fleet's one after another and within a tenth of the thread's time. */
class LargeDocuments {
  readonly #turns = new KeyedMutex<string>();

  /** @throws ApiError invalid_json, request_too_large */
  async parse(fleetId: string, bytes: Buffer): Promise<unknown> {
    return new Promise((resolve, reject) => {
      void this.#turns.run(fleetId, async () => {
        const startedAtMs = performance.now();
        try {
          if (hasMoreValues(valuesMax, bytes)) throw tooManyValues;
          resolve(parseJson(bytes));
        } catch (error) {
          reject(error);
        }
        await sleep(pauseFactor * (performance.now() - startedAtMs));
      });
    });
  }
}

const tooManyValues = new ApiError('request_too_large', {
  msg: `A body of more than ${documentBytesMax} bytes may have ${valuesMax} values: numbers, texts, lists, objects and the like.`,
});

/** Parses bodies as JSON documents; an absent body is an empty one. */
export function takeDocuments(app: FastifyInstance): void {
  const large = new LargeDocuments();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async ({ params }: FastifyRequest, bytes: Buffer) => {
      if (bytes.length === 0) return undefined;
      const { fleet_id: fleetId = '' } = params as { fleet_id?: string };
      const document = bytes.length > documentBytesMax ? await large.parse(fleetId, bytes) : parseJson(bytes);
      if (typeof document === 'object' && document !== null) texts.set(document, bytes);
      return document;
    },
  );
  app.addHook('preValidation', async (request) => {
    request.body ??= {};
  });
}

/** Keeps bodies as they are sent, byte for byte (D11). */
export function takeBytes(app: FastifyInstance): void {
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes, done) => {
    done(null, bytes);
  });
}
