import { type Static, Type } from 'typebox';
import { scopes } from '../../core/scope.ts';
import { closedObject, fleetId, nullable, time } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';
import { pageKeyHeader } from './page-key.ts';

const newConsoleCodeBody = closedObject({
  scopes: Type.Optional(
    Type.Array(Type.Enum([...scopes], { type: 'string' }), {
      minItems: 1,
      uniqueItems: true,
      description: "Some of the token's; absent: all of them.",
    }),
  ),
  fleet_id: Type.Optional(fleetId),
});
/** A code that a page trades for a session, once. */
const consoleCodeDocument = Type.Object({
  code: Type.String({ description: 'For /console/#code=CODE.' }),
  expires_at: time,
});

/** `/console-codes`: codes for sessions of the console. */
export const consoleCodeRoutes = declareRoutes({
  'POST /console-codes': {
    scope: 'any',
    summary: 'Make a code for a session of the console',
    description:
      'The page at /console/, or the link /console/#code=CODE, trades the code for a session, once, within a minute, at the node that made it.',
    body: newConsoleCodeBody,
    answers: { 201: consoleCodeDocument },
  },
});

const newConsoleSessionBody = closedObject({ code: Type.String({ minLength: 1, maxLength: 64 }) });
/** A session of the console. */
const consoleSessionDocument = Type.Object({
  key: Type.String({
    description: `Half of the session's secret, sent as \`${pageKeyHeader}\` with each request. The other half is in the cookie that the answer sets. Shown once.`,
  }),
  token_id: Type.String(),
  name: Type.String(),
  scopes: Type.Array(Type.Enum([...scopes])),
  fleet_id: nullable('string'),
  expires_at: nullable('string'),
  idle_at: nullable('string', { description: 'When it ends without further requests.' }),
});
export type ConsoleSessionDocument = Static<typeof consoleSessionDocument>;

/** `/console-sessions`: the one route that a code opens. */
export const consoleSessionRoutes = declareRoutes({
  'POST /console-sessions': {
    scope: 'none',
    summary: 'Trade a code for a session of the console',
    description:
      'Needs no token. The answer sets a cookie, which opens nothing without the key. The session has the scopes and the fleet of its code, ends after 12 hours, after an hour without requests, or with the token that made the code. A token has at most 20: a further one ends the least recently used. One that the browser had before ends, too.',
    body: newConsoleSessionBody,
    answers: { 201: consoleSessionDocument },
  },
});
