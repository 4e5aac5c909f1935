import type { FastifyInstance } from 'fastify';
import { parseJson } from '../../declarations/schemas/payload.ts';

/** Maximum size of a JSON document; the default for all routes. */
export const documentBytesMax = 65_536;

/** Source texts of parsed documents. */
const texts = new WeakMap<object, Buffer>();

/** Returns the source text of a document that `takeDocuments` has parsed. */
export function bodyTextOf(document: object): Buffer {
  const text = texts.get(document);
  if (text === undefined) throw new Error('this document was not parsed from a body');
  return text;
}

/** Parses bodies as JSON documents; an absent body is an empty one. */
export function takeDocuments(app: FastifyInstance): void {
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes: Buffer, done) => {
    const document = bytes.length === 0 ? undefined : parseJson(bytes);
    if (typeof document === 'object' && document !== null) texts.set(document, bytes);
    done(null, document);
  });
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
