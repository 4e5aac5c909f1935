import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../core/errors.ts';
import type { AdminApp } from './context.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its body may take any time, while pieces of it come. */
    hasLongBody?: boolean;
  }
}

/** Bounds how long bodies take to arrive, on all routes that are added from here on. */
export function limitBodyTimes(app: AdminApp, config: { readonly bodyTimeoutSeconds: number }): void {
  app.addHook('preParsing', async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.raw.complete) return;
    if (request.headers.expect !== undefined) reply.raw.writeContinue();
    watch(request, reply, config.bodyTimeoutSeconds * 1_000);
  });
  app.addHook('onSend', async ({ raw }: FastifyRequest, reply: FastifyReply) => {
    // Its body is not read: the listener closes the connection behind the answer.
    if (!raw.complete && reply.statusCode >= 400) reply.header('Connection', 'close');
  });
}

function watch({ raw, routeOptions }: FastifyRequest, reply: FastifyReply, timeoutMs: number): void {
  const { hasLongBody = false } = routeOptions.config;
  const { socket } = raw;
  let bytesBefore = socket.bytesRead;
  const look = (): void => {
    if (raw.complete) return;
    // What has come and is not taken yet is the server's own delay.
    if (hasLongBody && (socket.bytesRead > bytesBefore || raw.readableLength > 0)) {
      bytesBefore = socket.bytesRead;
      timer.refresh();
    } else if (hasLongBody) socket.destroy();
    else {
      // For whoever reads the body: to destroy the request would take the connection away before it is answered.
      const msg = 'The body did not arrive in time (bodyTimeoutSeconds).';
      raw.emit('error', new ApiError('bad_request', { msg }));
    }
  };
  const timer = setTimeout(look, timeoutMs);
  const clear = (): void => clearTimeout(timer);
  raw.once('end', clear);
  reply.raw.once('close', clear);
}
