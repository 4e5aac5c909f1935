import { nameLengthMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { type DeviceKey, deviceIdPattern, deviceSecretPattern, fleetIdPattern } from '../../core/identity.ts';
import { plainCharacter } from '../../core/plain-text.ts';
import type { ClaimRequest } from '../../declarations/claim-token.ts';
import { parseMessage } from '../../declarations/schemas/payload.ts';
import { checkHost } from '../auth/authentication.ts';
import type { HttpContext } from '../server/context.ts';
import type { OpenEndpoint } from '../server/endpoint.ts';
import { createReply, type Reply } from '../server/reply.ts';

/** Lockout key for all wrong claim tokens of an address together; no device has this key. */
const anyToken = 'POST /v1/claim' as DeviceKey;

const fields: Readonly<Record<string, RegExp>> = {
  fleet_id: fleetIdPattern,
  claim_token: /^[\x21-\x7e]{1,64}$/,
  device_id: deviceIdPattern,
  device_secret: deviceSecretPattern,
  name: new RegExp(`^${plainCharacter}{0,${nameLengthMax}}$`, 'u'),
};
const required: readonly string[] = ['fleet_id', 'claim_token'];

/** `POST /v1/claim`: a device without credentials registers itself. */
export const claimEndpoint: OpenEndpoint = {
  method: 'POST',
  path: '/v1/claim',
  isOpen: true,
  takesBody: true,
  async handle(input, { address }, context): Promise<Reply> {
    const claim = parseClaim(input.body, address);
    const client = { address };
    const token = tokenKeyOf(claim);
    context.lockouts.check(token, context.lockouts.fingerprint(token), client);
    try {
      return await answer(claim, input.headers.host, context);
    } catch (error) {
      throw isUnauthorized(error) ? wrongToken(error, token, claim.fleetId, context, client) : error;
    }
  },
};

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
  fleetId: string,
  { lockouts }: HttpContext,
  client: { readonly address: string },
): unknown {
  try {
    lockouts.check(anyToken, lockouts.fingerprint(anyToken), client);
  } catch (locked) {
    return locked;
  }
  lockouts.failed(anyToken, client, '');
  lockouts.failed(token, client, fleetId);
  return error;
}

async function answer(claim: ClaimRequest, host: string, { config, claims }: HttpContext): Promise<Reply> {
  if (config.settings.current.hostSuffix !== '')
    checkHost(host, config.settings.current.hostSuffix, claim.fleetId);
  const { fleetId, deviceId, deviceSecret } = await claims.claim(claim);
  const document = { fleet_id: fleetId, device_id: deviceId, device_secret: deviceSecret };
  return createReply(201, JSON.stringify(document));
}

/** @throws ApiError invalid_json, invalid_body. */
function parseClaim(bytes: Buffer, address: string): ClaimRequest {
  if (bytes.length === 0) throw new ApiError('invalid_body');
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
