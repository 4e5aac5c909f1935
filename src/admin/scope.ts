/**
 * What a token must be allowed to do for a route: look; send and settle mail; declare devices, fleets, schemas and
 * actions; run the server. Each route names its own in `config.scope`.
 */
export const scopes = ['read', 'mail', 'provision', 'admin'] as const;
export type Scope = (typeof scopes)[number];

declare module 'fastify' {
  interface FastifyContextConfig {
    scope?: Scope;
  }
}
