import { Type } from 'typebox';
import type { AdminApp, Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import { expiryOf, timeTextOf } from '../../admin-api/request/times.ts';
import {
  type ClaimTokenDocument,
  claimTokenDocument,
  createdClaimTokenDocument,
  newClaimTokenBody,
} from '../../contract/access/token.ts';
import { errorAnswers, fleetPath, listOf, pageLimit } from '../../contract/document.ts';
import type { Settings } from '../../core/config/settings.ts';
import type { ClaimToken } from '../../declarations/claim-token.ts';
import type { ClaimTokens } from '../../declarations/claim-tokens.ts';
import { isExpired } from '../../declarations/tokens.ts';

interface Needs {
  claimTokens: ClaimTokens;
  config: { readonly settings: Settings<{ claiming: boolean }> };
}

function describe(token: ClaimToken): ClaimTokenDocument {
  return {
    claim_token_id: token.id,
    fleet_id: token.fleetId,
    name: token.name,
    devices_max: token.devicesMax,
    devices_claimed: token.devicesClaimed,
    created_at: timeTextOf(token.createdAtMs),
    expires_at: timeTextOf(token.expiresAtMs),
    expired: isExpired(token),
    id_pattern: token.idPattern,
    tags: [...token.tags],
  };
}

const listing = {
  summary: 'List claim tokens',
  params: fleetPath,
  querystring: Type.Object({ after: Type.String({ default: '', maxLength: 36 }), limit: pageLimit }),
  response: { 200: listOf(claimTokenDocument), ...errorAnswers },
};

const listClaimTokens =
  ({ claimTokens }: Needs): Handler<typeof listing> =>
  async ({ params, query: { after, limit } }) => {
    const rest = claimTokens.list(params.fleet_id).filter(({ id }) => id > after);
    const items = rest.slice(0, limit).map(describe);
    return { items, next: rest.length > limit ? (items.at(-1)?.claim_token_id ?? null) : null };
  };

const creation = {
  summary: 'Create a claim token',
  description:
    'Creates a token with which devices register themselves at `POST /v1/claim`. Its text is returned only once.',
  params: fleetPath,
  body: newClaimTokenBody,
  response: { 201: createdClaimTokenDocument, ...errorAnswers },
};

const createClaimToken =
  ({ claimTokens, config }: Needs): Handler<typeof creation> =>
  async ({ params, body, audited }, reply) => {
    const { token, secret } = await claimTokens.create({
      fleetId: params.fleet_id,
      name: body.name ?? '',
      devicesMax: body.devices_max,
      expiresAtMs: expiryOf(body.expires_at),
      idPattern: body.id_pattern ?? null,
      tags: body.tags ?? [],
    });
    audited.about.claim_token_id = token.id;
    reply.code(201);
    return { ...describe(token), claim_token: secret, claiming: config.settings.current.claiming };
  };

const revocation = {
  summary: 'Revoke a claim token',
  description: 'Devices that claimed with it remain.',
  params: Type.Interface([fleetPath], { claim_token_id: Type.String() }),
  response: { 204: Type.Null(), ...errorAnswers },
};

const revokeClaimToken =
  ({ claimTokens }: Needs): Handler<typeof revocation> =>
  async ({ params }, reply) => {
    await claimTokens.revoke(params.fleet_id, params.claim_token_id);
    return reply.code(204).send(null);
  };

/** `/fleets/{fleet_id}/claim-tokens`: tokens with which devices register themselves. */
export function addClaimTokenRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  const path = '/fleets/:fleet_id/claim-tokens';
  route('GET', path, 'read', listing, listClaimTokens(context));
  route('POST', path, 'provision', creation, createClaimToken(context));
  route('DELETE', `${path}/:claim_token_id`, 'provision', revocation, revokeClaimToken(context));
}
