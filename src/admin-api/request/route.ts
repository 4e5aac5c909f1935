import type {
  ContextConfigDefault,
  FastifyContextConfig,
  FastifySchema,
  RouteGenericInterface,
} from 'fastify';
import type { Scope } from '../../core/scope.ts';
import type { AdminApp, Handler } from './context.ts';

/** Further options of a route: its limit for bodies, and what else its configuration says. */
type RouteOptions = Omit<FastifyContextConfig, 'scope'> & { bodyLimit?: number };

/** Returns a function that adds routes to `app`, each for tokens with its scope. */
export function routesOf(app: AdminApp) {
  return <S extends FastifySchema>(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    scope: Scope | 'any',
    schema: S,
    handler: Handler<S>,
    { bodyLimit, ...config }: RouteOptions = {},
  ): void => {
    app.route<RouteGenericInterface, ContextConfigDefault, S>({
      method,
      url,
      config: { scope, ...config },
      ...(bodyLimit !== undefined && { bodyLimit }),
      schema,
      handler,
    });
  };
}
