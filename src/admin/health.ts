import { Type } from 'typebox';
import { unavailable } from '../core/errors.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { errorAnswers } from './documents.ts';

const ok = Type.Object({ ok: Type.Literal(true) });

/** `/healthz`: this thread answers. `/readyz`: devices are answered too. */
export function addHealthRoutes(app: AdminApp, { isReady }: AdminContext): void {
  const schema = { security: [], response: { 200: ok, ...errorAnswers } };
  app.get('/healthz', { schema }, async () => ({ ok: true as const }));
  app.get('/readyz', { schema }, async () => {
    if (!isReady()) throw unavailable('The server is starting or stopping.');
    return { ok: true as const };
  });
}
