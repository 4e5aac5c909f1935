import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { parseJson } from '../../declarations/schemas/payload.ts';

/** Largest JSON body of the routes that take a document of ours. */
export const documentBytesMax = 65_536;

/** The texts that documents were parsed from, while they are at hand. */
const texts = new WeakMap<object, Buffer>();

/** The text of a document that `takeDocuments` has parsed. */
export function bodyTextOf(document: object): Buffer {
  const text = texts.get(document);
  if (text === undefined) throw new Error('this document was not parsed from a body');
  return text;
}

/** Bodies of these routes are JSON documents; no body is an empty one. */
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

/** Bodies of these routes are kept as they are sent, byte for byte (D11). */
export function takeBytes(app: FastifyInstance): void {
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes, done) => {
    done(null, bytes);
  });
}

/** Types and documents a body that `takeBytes` reads. Without a body there is nothing to read: null. */
export function bytesBody(description: string) {
  return Type.Unsafe<Buffer | null | undefined>({ description });
}
