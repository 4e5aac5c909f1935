import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { parseJson } from '../registry/payload.ts';

/** Largest JSON body of the routes that take a document of ours. */
export const documentBytesMax = 65_536;

/** Bodies of these routes are JSON documents; no body is an empty one. */
export function takeDocuments(app: FastifyInstance): void {
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes: Buffer, done) => {
    done(null, bytes.length === 0 ? undefined : parseJson(bytes));
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
