import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../core/errors.ts';
import type { AdminApp } from '../request/admin-app.ts';
import type { ConsoleFiles } from './console-files.ts';

/**
 * Headers of every answer below `/console/`. Devices are hostile writers of what the console shows: no script but its
 * own files, no markup from text (trusted types), no other host, no frame around it, no window that opened it.
 */
const safetyHeaders = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

const page = 'index.html';

/** Adds the console's files, and the way to it from `/` for browsers. */
export function addConsoleRoutes(app: AdminApp, files: ConsoleFiles): void {
  const route = { exposeHeadRoute: true, schema: { hide: true } };
  app.get('/', route, async ({ headers }, reply) => {
    if (!wantsPage(headers.accept)) throw new ApiError('route_not_found');
    return reply.redirect('/console/', 302);
  });
  app.get('/console', route, async (_request, reply) => reply.redirect('/console/', 301));
  app.get('/console/*', route, async (request: FastifyRequest, reply) => {
    const { '*': name } = request.params as { '*': string };
    return answer(request, reply, files, name);
  });
}

/** Any path without a file of its own is a screen, whose URL is its state: the page itself draws it. */
function answer(request: FastifyRequest, reply: FastifyReply, files: ConsoleFiles, name: string): unknown {
  const { accept, 'accept-encoding': acceptEncoding = '', 'if-none-match': ifNoneMatch } = request.headers;
  reply.headers(safetyHeaders);
  if (files.isEmpty) {
    throw new ApiError('route_not_found', { msg: 'This build has no console. Make one: npm run build.' });
  }
  const found =
    files.find(name === '' ? page : name, String(acceptEncoding)) ??
    (wantsPage(accept) ? files.find(page, String(acceptEncoding)) : undefined);
  if (found === undefined) throw new ApiError('route_not_found');
  const { body, encoding, etag, contentType, isImmutable } = found;
  reply.headers({
    ETag: etag,
    Vary: 'Accept, Accept-Encoding',
    'Cache-Control': isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
  });
  if (matches(ifNoneMatch, etag)) return reply.code(304).send();
  if (encoding !== 'identity') reply.header('Content-Encoding', encoding);
  return reply.type(contentType).send(body);
}

function wantsPage(accept: string | undefined): boolean {
  return accept?.toLowerCase().includes('text/html') ?? false;
}

/** Compares as RFC 9110, 13.1.2 asks: weakly, against each of a list. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}
