import { Type } from 'typebox';
import { readyAnswer } from '../../core/telemetry/readiness.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';

const ok = Type.Object({ ok: Type.Boolean() });
const notReady = Type.Object({
  error: Type.String(),
  msg: Type.String(),
  reasons: Type.Array(Type.Object({ reason: Type.String(), msg: Type.String() })),
});

const health = { summary: 'Tell whether the process answers', security: [], response: { 200: ok } };

const tellHealth: Handler<typeof health> = async () => ({ ok: true });

const readiness = {
  summary: 'Tell whether devices are served',
  security: [],
  response: { 200: ok, 503: notReady },
};

const tellReadiness =
  ({ notReady: reasons }: AdminContext): Handler<typeof readiness> =>
  async (_request, reply) => {
    const { status, body } = readyAnswer(reasons());
    reply.code(status);
    if (status === 503) reply.header('Retry-After', '1');
    return body as never;
  };

/** For HEAD too, which some balancers ask with. `/healthz`: the process answers. `/readyz`: devices are answered too, and what they send is taken. */
export function addHealthRoutes(app: AdminApp, context: AdminContext): void {
  app.get('/healthz', { exposeHeadRoute: true, schema: health }, tellHealth);
  app.get('/readyz', { exposeHeadRoute: true, schema: readiness }, tellReadiness(context));
}
