import { type Static, Type } from 'typebox';
import { wordOf } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

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
  'silent',
  'delayed',
  'ok',
]);
const findingDocument = Type.Object({ kind, sentence: Type.String() });

/** Why a device is stuck. */
const diagnosisDocument = Type.Interface([findingDocument], {
  findings: Type.Array(findingDocument, {
    description: 'All that was found, what explains most first; kind and sentence are of the first.',
  }),
});
export type DiagnosisDocument = Static<typeof diagnosisDocument>;

/** `…/devices/{device_id}/diagnosis`. */
export const diagnosisRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/devices/{device_id}/diagnosis': {
    scope: 'read',
    summary: 'Say why a device is stuck',
    description:
      'In one sentence, from its state, its mailbox, and what this node has refused to it lately; `ok` if nothing is wrong.',
    answers: { 200: diagnosisDocument },
  },
});
