import { type Static, Type } from 'typebox';
import { idPatternLengthMax } from '../../core/bounds.ts';
import { scopes } from '../../core/scope.ts';
import {
  closedObject,
  expiresAt,
  fleetId,
  listOf,
  name,
  nullable,
  pageLimit,
  tags,
  time,
} from '../document.ts';
import { declareRoutes, noDocument } from '../routes/route.ts';

/** An API token, or a session of the console. */
const tokenDocument = Type.Object({
  token_id: Type.String(),
  kind: Type.Enum(['token', 'session']),
  name: Type.String(),
  scopes: Type.Array(Type.Enum([...scopes])),
  fleet_id: nullable('string', { description: 'The only fleet it is valid for; null for all.' }),
  created_at: time,
  expires_at: nullable('string'),
  idle_at: nullable('string', {
    description: 'When a session ends without further requests; null for a token.',
  }),
  parent_id: nullable('string', {
    description: 'Token that made the session, which ends with it; null: the bootstrap token, or no session.',
  }),
  expired: Type.Boolean(),
  last_used_at: nullable('string', { description: 'Since the server started.' }),
  address: nullable('string', { description: 'From which a session was opened, as the server saw it.' }),
  browser: nullable('string', { description: 'In which a session was opened, as it says itself.' }),
});
export type TokenDocument = Static<typeof tokenDocument>;
const createdTokenDocument = Type.Interface([tokenDocument], {
  token: Type.String({ description: 'Shown once.' }),
});
export type CreatedTokenDocument = Static<typeof createdTokenDocument>;

const newTokenBody = closedObject({
  name: Type.String({ ...name, minLength: 1, description: 'Who or what uses it.' }),
  // A type lets the validator check uniqueness by hash instead of comparing all pairs.
  scopes: Type.Array(Type.Enum([...scopes], { type: 'string' }), { minItems: 1, uniqueItems: true }),
  fleet_id: Type.Optional(
    Type.Unsafe<string | null>({
      anyOf: [fleetId, { type: 'null' }],
      description: 'Absent or null: all fleets.',
    }),
  ),
  expires_at: expiresAt,
});

/** The token of a request. */
const selfDocument = Type.Object({
  kind: Type.Enum(['bootstrap', 'token', 'session']),
  token_id: nullable('string', { description: 'Null for the bootstrap token.' }),
  name: Type.String(),
  scopes: Type.Array(Type.Enum([...scopes])),
  fleet_id: nullable('string', { description: 'The only fleet it is valid for; null for all.' }),
  expires_at: nullable('string'),
  idle_at: nullable('string', { description: 'When a session ends without further requests.' }),
});
export type SelfDocument = Static<typeof selfDocument>;

/** `/self`, the token of a request, and `/tokens`: who may use the admin API. */
export const tokenRoutes = declareRoutes({
  'GET /self': {
    scope: 'any',
    summary: 'Show the token of this request',
    answers: { 200: selfDocument },
  },
  'DELETE /self': {
    scope: 'any',
    summary: 'End the session of the console that makes this request',
    answers: { 204: noDocument },
  },
  'GET /tokens': {
    scope: 'admin',
    summary: 'List API tokens and sessions of the console',
    query: Type.Object({ after: Type.String({ default: '', maxLength: 36 }), limit: pageLimit }),
    answers: { 200: listOf(tokenDocument) },
  },
  'POST /tokens': {
    scope: 'admin',
    summary: 'Create an API token',
    description: 'Creates an API token. Its text is shown only once and not stored.',
    body: newTokenBody,
    answers: { 201: createdTokenDocument },
  },
  'DELETE /tokens/{token_id}': {
    scope: 'admin',
    summary: 'Revoke an API token',
    description:
      'Revokes an API token and its sessions of the console, or one session. From the answer on, it is refused, and its open requests are cut off.',
    answers: { 204: noDocument },
  },
});

/** A token with which devices register themselves. */
const claimTokenDocument = Type.Object({
  claim_token_id: Type.String(),
  fleet_id: fleetId,
  name,
  devices_max: Type.Integer(),
  devices_claimed: Type.Integer(),
  created_at: time,
  expires_at: nullable('string'),
  expired: Type.Boolean(),
  id_pattern: nullable('string'),
  tags,
});
export type ClaimTokenDocument = Static<typeof claimTokenDocument>;
const createdClaimTokenDocument = Type.Interface([claimTokenDocument], {
  claim_token: Type.String({ description: 'Shown once.' }),
  claiming: Type.Boolean({
    description: 'Whether devices may claim now: the key `claiming` of the configuration.',
  }),
});
export type CreatedClaimTokenDocument = Static<typeof createdClaimTokenDocument>;

const newClaimTokenBody = closedObject({
  name: Type.Optional(name),
  devices_max: Type.Integer({
    minimum: 1,
    maximum: 100_000_000,
    description: 'Maximum devices that may claim with it.',
  }),
  expires_at: expiresAt,
  id_pattern: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: idPatternLengthMax,
      description:
        'RE2 pattern that the whole device id must match. With a pattern, a device must name its id.',
    }),
  ),
  tags: Type.Optional(tags),
});

/** `/fleets/{fleet_id}/claim-tokens`: tokens with which devices register themselves. */
export const claimTokenRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/claim-tokens': {
    scope: 'read',
    summary: 'List claim tokens',
    query: Type.Object({ after: Type.String({ default: '', maxLength: 36 }), limit: pageLimit }),
    answers: { 200: listOf(claimTokenDocument) },
  },
  'POST /fleets/{fleet_id}/claim-tokens': {
    scope: 'provision',
    summary: 'Create a claim token',
    description:
      'Creates a token with which devices register themselves at `POST /v1/claim`. Its text is returned only once.',
    body: newClaimTokenBody,
    answers: { 201: createdClaimTokenDocument },
  },
  'DELETE /fleets/{fleet_id}/claim-tokens/{claim_token_id}': {
    scope: 'provision',
    summary: 'Revoke a claim token',
    description: 'Devices that claimed with it remain.',
    answers: { 204: noDocument },
  },
});
