import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  ContextConfigDefault,
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  FastifySchema,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
} from 'fastify';
import { ApiError } from '../../core/errors.ts';
import { type DeviceKey, deviceIdPattern, deviceKeyOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';

/** Fastify with routes typed by their TypeBox schemas. */
export type AdminApp = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** A route handler, with request and answer typed by the route's schema. */
export type Handler<S extends FastifySchema> = RouteHandlerMethod<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  RouteGenericInterface,
  ContextConfigDefault,
  S,
  TypeBoxTypeProvider,
  FastifyBaseLogger
>;

/**
 * Returns the device key of a path. Checks that the fleet exists; whether the device does, its shard knows.
 * @throws ApiError fleet_not_found; device_not_found for an id that no device can have (D1).
 */
export function deviceOfRequest(
  { registry }: { registry: Registry },
  path: { fleet_id: string; device_id: string },
): DeviceKey {
  const { fleet } = registry.fleet(path.fleet_id);
  if (!deviceIdPattern.test(path.device_id)) throw new ApiError('device_not_found');
  return deviceKeyOf(fleet.fleetId, path.device_id);
}

/** Returns the route as in the OpenAPI document: the router doubles a colon that starts no parameter. */
export function routeOf({ routeOptions }: FastifyRequest): string | undefined {
  return routeOptions.url?.replaceAll('::', ':');
}
