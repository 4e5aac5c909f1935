import { healthDocument, notReadyDocument } from '../../contract/server.ts';
import { type NotReady, readyAnswer } from '../../core/telemetry/readiness.ts';
import type { AdminApp, Handler } from '../request/admin-app.ts';

interface Needs {
  notReady(): readonly NotReady[];
}

const health = {
  summary: 'Check whether the process answers',
  security: [],
  response: { 200: healthDocument },
};

const answerHealth: Handler<typeof health> = async () => ({ ok: true });

const readiness = {
  summary: 'Check whether devices are served',
  security: [],
  response: { 200: healthDocument, 503: notReadyDocument },
};

const answerReadiness =
  ({ notReady: reasons }: Needs): Handler<typeof readiness> =>
  async (_request, reply) => {
    const { status, body } = readyAnswer(reasons());
    reply.code(status);
    if (status === 503) reply.header('Retry-After', '1');
    return body as never;
  };

/** Adds `/healthz`: the process answers; and `/readyz`: devices are served, and their writes accepted. Both also for HEAD, which some balancers use. */
export function addHealthRoutes(app: AdminApp, context: Needs): void {
  app.get('/healthz', { exposeHeadRoute: true, schema: health }, answerHealth);
  app.get('/readyz', { exposeHeadRoute: true, schema: readiness }, answerReadiness(context));
}
