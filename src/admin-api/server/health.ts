import { Type } from 'typebox';
import { readyAnswer } from '../../core/telemetry/readiness.ts';
import type { AdminApp, AdminContext } from '../request/context.ts';

const ok = Type.Object({ ok: Type.Boolean() });
const notReady = Type.Object({
  error: Type.String(),
  msg: Type.String(),
  reasons: Type.Array(Type.Object({ reason: Type.String(), msg: Type.String() })),
});

/** For HEAD too, which some balancers ask with. `/healthz`: the process answers. `/readyz`: devices are answered too, and what they send is taken. */
export function addHealthRoutes(app: AdminApp, { notReady: reasons }: AdminContext): void {
  app.get(
    '/healthz',
    {
      exposeHeadRoute: true,
      schema: { summary: 'Tell whether the process answers', security: [], response: { 200: ok } },
    },
    async () => ({ ok: true }),
  );
  app.get(
    '/readyz',
    {
      exposeHeadRoute: true,
      schema: {
        summary: 'Tell whether devices are served',
        security: [],
        response: { 200: ok, 503: notReady },
      },
    },
    async (_request, reply) => {
      const { status, body } = readyAnswer(reasons());
      reply.code(status);
      if (status === 503) reply.header('Retry-After', '1');
      return body as never;
    },
  );
}
