import type { Handlers } from '../../admin-api/request/routes.ts';
import { expiryOf, timeTextOf } from '../../admin-api/request/times.ts';
import type { ClaimTokenDocument, claimTokenRoutes } from '../../contract/access/token.ts';
import type { Settings } from '../../core/config/settings.ts';
import type { ClaimToken } from '../../declarations/claim-token.ts';
import type { ClaimTokens } from '../../declarations/claim-tokens.ts';
import { isExpired } from '../../declarations/tokens.ts';

interface Parts {
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

/** Handles `/fleets/{fleet_id}/claim-tokens`. */
export function claimTokenHandlers({ claimTokens, config }: Parts): Handlers<typeof claimTokenRoutes> {
  return {
    'GET /fleets/{fleet_id}/claim-tokens': async ({ params, query: { after, limit } }) => {
      const rest = claimTokens.list(params.fleet_id).filter(({ id }) => id > after);
      const items = rest.slice(0, limit).map(describe);
      return { items, next: rest.length > limit ? (items.at(-1)?.claim_token_id ?? null) : null };
    },
    'POST /fleets/{fleet_id}/claim-tokens': async ({ params, body, audited }, reply) => {
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
    },
    'DELETE /fleets/{fleet_id}/claim-tokens/{claim_token_id}': async ({ params }, reply) => {
      await claimTokens.revoke(params.fleet_id, params.claim_token_id);
      return reply.code(204).send(null);
    },
  };
}
