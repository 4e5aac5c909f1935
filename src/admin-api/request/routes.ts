import type { Readable } from 'node:stream';
import type { ContextConfigDefault, RouteGenericInterface } from 'fastify';
import type { Static, TSchema, TUnsafe } from 'typebox';
import { errorAnswers } from '../../contract/document.ts';
import {
  type PathParameters,
  pathParameters,
  type RouteDeclaration,
  type RouteKey,
  type RouteMethod,
  type RouteSettings,
  type Routes,
} from '../../contract/routes/route.ts';
import type { AdminApp, Handler } from './admin-app.ts';

declare module 'fastify' {
  interface FastifyContextConfig extends Partial<RouteSettings> {}
}

/** A document, or the text of one, which a handler writes itself where payloads stay as they were sent (D11). */
type Answers<R extends RouteDeclaration> = {
  [Status in keyof R['answers']]: TUnsafe<
    | (R['answers'][Status] extends TSchema ? Static<R['answers'][Status]> : never)
    | Uint8Array
    | string
    | Readable
  >;
};

/** A body of bytes is Node's in a handler. */
type Body<B> = B extends TUnsafe<Uint8Array | null | undefined> ? TUnsafe<Buffer | null | undefined> : B;

/** Handles one route: request and answer are typed by its declaration. */
export type HandlerOf<R extends Routes, Key extends keyof R & RouteKey> = Handler<{
  params: PathParameters<Key, R[Key]>;
  querystring: R[Key]['query'];
  headers: R[Key]['headers'];
  body: Body<R[Key]['body']>;
  response: Answers<R[Key]> & typeof errorAnswers;
}>;

/** Handlers of the routes of a noun. */
export type Handlers<R extends Routes> = { [Key in keyof R & RouteKey]: HandlerOf<R, Key> };

/** Adds routes to `app`, in the order of their declaration. `bodyBytesMax`: of routes whose bodies have a limit of their own. */
export function addRoutes<R extends Routes>(
  app: AdminApp,
  routes: R,
  handlers: Handlers<R>,
  bodyBytesMax: { [Key in keyof R]?: number } = {},
): void {
  for (const [key, route] of Object.entries(routes) as [keyof R & RouteKey, RouteDeclaration][]) {
    const [method, path] = key.split(' ') as [RouteMethod, string];
    const { answers, query, headers, body, params: _, summary, description, ...config } = route;
    const bodyLimit = bodyBytesMax[key];
    app.route<RouteGenericInterface, ContextConfigDefault, object>({
      method,
      // The router takes a colon for the start of a parameter, unless it is doubled.
      url: path.replaceAll(':', '::').replace(/\{(\w+)\}/g, ':$1'),
      config,
      ...(bodyLimit !== undefined && { bodyLimit }),
      schema: {
        summary,
        ...(description !== undefined && { description }),
        ...(route.scope === 'none' && { security: [] }),
        ...(path.includes('{') && { params: pathParameters(key, route) }),
        ...(headers && { headers }),
        ...(query && { querystring: query }),
        ...(body && { body }),
        response: { ...answers, ...errorAnswers },
      },
      handler: handlers[key] as Handler<object>,
    });
  }
}
