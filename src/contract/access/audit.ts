import { type Static, Type } from 'typebox';
import { listOf, nullable, pageLimit, time, wordOf } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

const books = ['change', 'traffic', 'refused'] as const;

const auditEntryDocument = Type.Object({
  entry: Type.Integer(),
  time,
  book: Type.Enum([...books]),
  by: Type.Object({
    kind: Type.Enum(['token', 'session', 'bootstrap', 'claim_token', 'server', 'unknown']),
    id: nullable('string'),
    name: nullable('string'),
  }),
  method: Type.String(),
  route: Type.String(),
  about: Type.Record(Type.String(), Type.Union([Type.String(), Type.Integer()]), {
    description: 'Path parameters, assigned ids, counts.',
  }),
  status: nullable('integer', {
    description: 'Null: under way, or the server stopped before the outcome was known.',
  }),
  error: nullable('string'),
  address: nullable('string'),
  forwarded_for: nullable('string', { description: 'As claimed by the client or a proxy.' }),
  request_id: nullable('string'),
  omitted: Type.Integer({ description: 'Refused requests before this one without an entry.' }),
});
export type AuditEntryDocument = Static<typeof auditEntryDocument>;

const filter = {
  book: Type.Optional(
    wordOf(books, { description: 'Changes, traffic of mail and claims, or refused requests.' }),
  ),
  about: Type.Optional(
    Type.String({
      maxLength: 256,
      description: 'Only entries that name this in `about`: the id of a device, the name of a forwarder.',
    }),
  ),
  fleet: Type.Optional(Type.String({ maxLength: 8 })),
  token: Type.Optional(Type.String({ maxLength: 36, description: 'Id of a token, or `bootstrap`.' })),
  from: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601.' })),
  to: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601, exclusive.' })),
};
const filterQuery = Type.Object(filter);
export type AuditFilter = Static<typeof filterQuery>;

/** `/audit` and its export. */
export const auditRoutes = declareRoutes({
  'GET /audit': {
    scope: 'admin',
    summary: 'List entries of the audit log',
    description: 'Newest first. With a filter a page may be short although `next` is set.',
    query: Type.Object({
      ...filter,
      after: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2 })),
      limit: pageLimit,
    }),
    answers: { 200: listOf(auditEntryDocument) },
    narrowsToFleet: true,
  },
  'GET /audit:export': {
    scope: 'admin',
    summary: 'Export the audit log',
    description: 'All entries up to now, oldest first, one per line.',
    query: filterQuery,
    answers: {
      200: { description: 'The entries.', content: { 'application/x-ndjson': { schema: Type.String() } } },
    },
    narrowsToFleet: true,
  },
});
