import { ApiError } from '../core/errors.ts';
import { type DeviceKey, deviceIdPattern, deviceSecretPattern, fleetIdPattern } from '../core/identity.ts';
import type { Claim } from '../registry/claim-token.ts';
import { parseMessage } from '../registry/payload.ts';
import { checkHost } from './authentication.ts';
import { BodyReader, checkDeclared } from './body.ts';
import { type BodyMemory, bodiesFull } from './body-memory.ts';
import { isJson } from './content-type.ts';
import type { HttpContext } from './context.ts';
import type { Exchange } from './exchange.ts';
import { createReply } from './reply.ts';
import { RequestHeaders } from './request-headers.ts';
import type { HttpRequest, HttpResponse } from './uws.ts';

/** Under which wrong claim tokens of an address are counted: no device has this key. */
const lockoutKey = 'POST /v1/claim' as DeviceKey;

const fields: Readonly<Record<string, RegExp>> = {
  fleet_id: fleetIdPattern,
  claim_token: /^[\x21-\x7e]{1,64}$/,
  device_id: deviceIdPattern,
  device_secret: deviceSecretPattern,
  name: /^\P{Cc}{0,255}$/u,
};
const required: readonly string[] = ['fleet_id', 'claim_token'];

/**
 * `POST /v1/claim`: a device without credentials registers itself. Everything is read off the request before this
 * returns.
 * @throws ApiError rate_limited, unsupported_media_type, request_too_large, invalid_body.
 */
export function acceptClaim(
  context: HttpContext,
  bodyMemory: BodyMemory,
  response: HttpResponse,
  request: HttpRequest,
  exchange: Exchange,
): void {
  const headers = new RequestHeaders(request);
  const declaredBytes = headers.bodyBytes;
  // Now: of a client that has gone there is none.
  const { address } = exchange;
  const client = { address };
  context.lockouts.check(lockoutKey, context.lockouts.fingerprint(lockoutKey), client);
  if (declaredBytes === 0) throw new ApiError('invalid_body');
  if (!isJson(headers.contentType)) throw new ApiError('unsupported_media_type');
  checkDeclared(declaredBytes, context.config);
  if (bodyMemory.isFull) throw bodiesFull();
  const onBody = (body: Buffer): void => {
    answer(parseClaim(body, address), headers.host, context).then(
      (reply) => exchange.reply(reply),
      (error: unknown) => {
        if (error instanceof ApiError && error.code === 'unauthorized') {
          context.lockouts.failed(lockoutKey, client);
        }
        exchange.fail(error);
      },
    );
  };
  const onError = (error: unknown): void => exchange.fail(error);
  exchange.body = new BodyReader(
    response,
    context.config,
    bodyMemory,
    (body) => {
      try {
        onBody(body);
      } catch (error) {
        onError(error);
      }
    },
    onError,
  );
}

async function answer(claim: Claim, host: string, { config, claims }: HttpContext) {
  if (config.hostSuffix !== '') checkHost(host, config.hostSuffix, claim.fleetId);
  const { fleetId, deviceId, deviceSecret } = await claims.claim(claim);
  const document = { fleet_id: fleetId, device_id: deviceId, device_secret: deviceSecret };
  return createReply(201, JSON.stringify(document));
}

/** @throws ApiError invalid_json, invalid_body. */
function parseClaim(bytes: Buffer, address: string): Claim {
  const given = parseMessage(bytes) ?? {};
  for (const [key, value] of Object.entries(given)) {
    const isField = Object.hasOwn(fields, key) && typeof value === 'string' && fields[key]?.test(value);
    // A name that is no field's is the device's text, and not repeated.
    if (!isField)
      throw invalid(Object.hasOwn(fields, key) ? `${key} is malformed.` : 'There is a field too many.');
  }
  const missing = required.find((key) => !Object.hasOwn(given, key));
  if (missing !== undefined) throw invalid(`${missing} is missing.`);
  const text = given as Record<string, string>;
  return {
    fleetId: text.fleet_id as string,
    claimToken: text.claim_token as string,
    ...(text.device_id !== undefined && { deviceId: text.device_id }),
    ...(text.device_secret !== undefined && { deviceSecret: text.device_secret }),
    ...(text.name !== undefined && { name: text.name }),
    address,
  };
}

function invalid(msg: string): ApiError {
  return new ApiError('invalid_body', { msg });
}
