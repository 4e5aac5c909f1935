import { type Static, Type } from 'typebox';
import { wordOf } from '../document.ts';

const kind = wordOf([
  'disabled',
  'locked_out',
  'wrong_secret',
  'schema_mismatch',
  'rate_limited',
  'refused',
  'never_seen',
  'mailbox_full',
  'requeues_all',
  'never_answers',
  'never_fetches',
  'offline',
  'delayed',
  'ok',
]);
const findingDocument = Type.Object({ kind, sentence: Type.String() });

/** Why a device is stuck. */
export const diagnosisDocument = Type.Interface([findingDocument], {
  findings: Type.Array(findingDocument, {
    description: 'All that was found, what explains most first; kind and sentence are of the first.',
  }),
});
export type DiagnosisDocument = Static<typeof diagnosisDocument>;
