import { type Static, Type } from 'typebox';
import { nullable, time } from '../document.ts';

export const auditEntryDocument = Type.Object({
  entry: Type.Integer(),
  time,
  book: Type.Enum(['change', 'traffic', 'refused']),
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
