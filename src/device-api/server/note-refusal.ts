import { ApiError } from '../../core/errors.ts';
import {
  type DeviceKey,
  deviceIdOf,
  deviceKeyOf,
  fleetIdOf,
  schemaNamePattern,
} from '../../core/identity.ts';
import type { Refusals, RefusedRequest } from '../../domain/devices/refusals.ts';
import type { HttpContext } from './context.ts';
import type { Endpoint, OpenEndpoint, RequestInput } from './endpoint.ts';
import type { Exchange } from './exchange.ts';

/** A request whose answer is an error. `device` is known once it has authenticated. */
export interface RefusedInput {
  device: DeviceKey | undefined;
  endpoint: Endpoint | OpenEndpoint;
  input: RequestInput;
}

/** A request that is being refused, and whose client may have gone. */
export interface RefusedExchange extends RefusedInput {
  exchange: Pick<Exchange, 'addressBytes'>;
}

/**
 * Notes why a device was refused, so that an operator can be told. Only of devices that exist: anybody can make up the
 * ids of others, and a lockout comes before they are looked up.
 */
export function noteRefusal(
  { refusals, pulses, log }: Pick<HttpContext, 'refusals' | 'pulses' | 'log'>,
  error: unknown,
  refused: RefusedExchange,
): void {
  if (!(error instanceof ApiError)) return;
  const device = refused.device ?? namedDevice(refusals, error, refused.input);
  if (device === undefined) return;
  pulses.refused(fleetIdOf(device));
  const address = refused.exchange.addressBytes;
  refusals.note(device, { ...kindOf(refused.endpoint, refused.input), ...describeError(error), address });
  // Without credentials it is a lockout, which whoever calls in its name may have caused.
  if (error.code !== 'rate_limited' || refused.device === undefined) return;
  const count = refusals.countLimited(device);
  if (count === undefined) return;
  const of = { fleet: fleetIdOf(device), device: deviceIdOf(device) };
  log.warn({ ...of, count, limit: error.message }, 'device over its rate; requests refused');
}

/** Notes that a request was accepted, if anything was refused to its device: so what was is told from what is. */
export function noteAccepted(
  refusals: Refusals,
  { device, endpoint, input }: RefusedInput & { device: DeviceKey },
): void {
  if (refusals.wasRefused(device)) refusals.noteAccepted(device, kindOf(endpoint, input));
}

function namedDevice(
  refusals: Refusals,
  { code, options: { detail } }: ApiError,
  { headers }: RequestInput,
): DeviceKey | undefined {
  const exists = detail === 'device_secret_incorrect' || detail === 'device_disabled';
  if (!exists && code !== 'rate_limited') return undefined;
  const device = deviceKeyOf(headers.fleetId, headers.deviceId);
  return exists || refusals.isKnown(device) ? device : undefined;
}

/** What an operator is told of an error. */
export function describeError({
  code,
  message: msg,
  options: { detail, errors, refusedValue: value },
}: ApiError): Pick<RefusedRequest, 'code' | 'detail' | 'msg' | 'error' | 'value'> {
  return { code, detail, msg, error: errors?.[0], value };
}

function kindOf(
  { method, path }: Endpoint | OpenEndpoint,
  { parameter }: RequestInput,
): Pick<RefusedRequest, 'route' | 'name'> {
  const hasName = path.endsWith(':schema_name') && schemaNamePattern.test(parameter);
  return { route: `${method} ${path}`, name: hasName ? parameter : undefined };
}
