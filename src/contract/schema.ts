import { type Static, Type } from 'typebox';
import { nullable } from './document.ts';

export const schemaKind = Type.Enum(['datapoint', 'message', 'mail']);
export const schemaDocument = Type.Object({
  kind: schemaKind,
  name: Type.String(),
  disabled: nullable('string', {
    description: 'Why bodies for it are answered 503, until it is stored again or the server restarts.',
  }),
});
export type SchemaDocument = Static<typeof schemaDocument>;
