import { type Static, Type } from 'typebox';
import { nullable, time } from '../document.ts';

/** Equal refused requests of one device. */
export const refusalDocument = Type.Object({
  route: Type.String({ description: 'Method and path, with the name of what is in it as a parameter.' }),
  name: nullable('string', { description: 'The schema or the mail that the path names.' }),
  error: Type.String({ description: 'Code of the error.' }),
  detail: nullable('string', { description: 'What was wrong with the credentials.' }),
  msg: Type.String(),
  path: nullable('string', { description: 'The first part of the body that does not match its schema.' }),
  path_msg: nullable('string'),
  count: Type.Integer(),
  first_at: time,
  last_at: time,
  accepted_at: nullable('string', {
    description:
      'When a request of the same route and name was accepted last; null if none was since the first refusal.',
  }),
});
export type RefusalDocument = Static<typeof refusalDocument>;

export const refusalsDocument = Type.Object({ items: Type.Array(refusalDocument) });
export type RefusalsDocument = Static<typeof refusalsDocument>;
