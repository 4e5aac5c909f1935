import { ApiError } from '../../core/errors.ts';
import { type DeviceKey, deviceIdPattern, deviceSecretPattern, fleetIdPattern } from '../../core/identity.ts';
import { plainCharacter } from '../../core/plain-text.ts';
import type { ClaimRequest } from '../../declarations/claim-token.ts';
import { parseMessage } from '../../declarations/schemas/payload.ts';
import { checkHost } from '../auth/authentication.ts';
import { type BodyLimits, BodyReader, checkDeclared } from '../body/body.ts';
import type { HttpContext } from '../server/context.ts';
import type { Exchange } from '../server/exchange.ts';
import { refuse } from '../server/refuse.ts';
import { createReply } from '../server/reply.ts';
import { isJson, RequestHeaders } from '../server/request-headers.ts';
import type { HttpRequest, HttpResponse } from '../uws/uws.ts';

/** Lockout key for all wrong claim tokens of an address together; no device has this key. */
const anyToken = 'POST /v1/claim' as DeviceKey;

const fields: Readonly<Record<string, RegExp>> = {
  fleet_id: fleetIdPattern,
  claim_token: /^[\x21-\x7e]{1,64}$/,
  device_id: deviceIdPattern,
  device_secret: deviceSecretPattern,
  name: new RegExp(`^${plainCharacter}{0,255}$`, 'u'),
};
const required: readonly string[] = ['fleet_id', 'claim_token'];

/**
 * `POST /v1/claim`: a device without credentials registers itself. Reads everything off the request before it returns.
 * @throws ApiError rate_limited, unsupported_media_type, request_too_large, invalid_body.
 */
export function acceptClaim(
  context: HttpContext,
  limits: BodyLimits,
  response: HttpResponse,
  request: HttpRequest,
  exchange: Exchange,
): void {
  const headers = new RequestHeaders(request);
  const declaredBytes = exchange.frame(headers);
  // Read now: it is no longer available if the client disconnects.
  const { address } = exchange;
  const client = { address };
  const { anonymous } = context;
  // Wrong tokens are counted after their check: behind the same NAT others have valid ones.
  const onError = (error: unknown): void =>
    refuse(exchange, isUnauthorized(error) ? error : (anonymous.refusal(exchange) ?? error), anonymous);
  try {
    checkHead(headers, declaredBytes, limits);
  } catch (error) {
    onError(error);
    return;
  }
  const onBody = (body: Buffer): void => {
    try {
      const claim = parseClaim(body, address);
      const token = tokenKeyOf(claim);
      context.lockouts.check(token, context.lockouts.fingerprint(token), client);
      answer(claim, headers.host, context).then(
        (reply) => exchange.reply(reply),
        (error: unknown) =>
          onError(isUnauthorized(error) ? wrongToken(error, token, context, client) : error),
      );
    } catch (error) {
      onError(error);
    }
  };
  exchange.body = new BodyReader(response, limits, exchange, onBody, onError);
}

/** @throws ApiError unsupported_media_type, request_too_large, invalid_body. */
function checkHead({ contentType }: RequestHeaders, declaredBytes: number, limits: BodyLimits): void {
  if (declaredBytes === 0) throw new ApiError('invalid_body');
  if (!isJson(contentType)) throw new ApiError('unsupported_media_type');
  checkDeclared(declaredBytes, limits);
}

/** Lockout key for one wrong token of an address. */
function tokenKeyOf({ fleetId, claimToken }: ClaimRequest): DeviceKey {
  return `${anyToken} ${fleetId} ${claimToken}` as DeviceKey;
}

function isUnauthorized(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === 'unauthorized';
}

/**
 * Counts a wrong token against its address, and against the pair of both: a device that keeps sending an old token is
 * refused without a lookup. An address that guesses is refused only its wrong tokens: behind the same NAT others have
 * valid ones.
 */
function wrongToken(
  error: ApiError,
  token: DeviceKey,
  { lockouts }: HttpContext,
  client: { readonly address: string },
): unknown {
  try {
    lockouts.check(anyToken, lockouts.fingerprint(anyToken), client);
  } catch (locked) {
    return locked;
  }
  lockouts.failed(anyToken, client);
  lockouts.failed(token, client);
  return error;
}

async function answer(claim: ClaimRequest, host: string, { config, claims }: HttpContext) {
  if (config.hostSuffix !== '') checkHost(host, config.hostSuffix, claim.fleetId);
  const { fleetId, deviceId, deviceSecret } = await claims.claim(claim);
  const document = { fleet_id: fleetId, device_id: deviceId, device_secret: deviceSecret };
  return createReply(201, JSON.stringify(document));
}

/** @throws ApiError invalid_json, invalid_body. */
function parseClaim(bytes: Buffer, address: string): ClaimRequest {
  const input = parseMessage(bytes) ?? {};
  for (const [key, value] of Object.entries(input)) {
    const isField = Object.hasOwn(fields, key) && typeof value === 'string' && fields[key]?.test(value);
    // The name of an unknown field is the device's own text, so it is not repeated.
    if (!isField) throw invalid(Object.hasOwn(fields, key) ? `${key} is malformed.` : 'Unknown field.');
  }
  const missing = required.find((key) => !Object.hasOwn(input, key));
  if (missing !== undefined) throw invalid(`${missing} is missing.`);
  const text = input as Record<string, string>;
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
