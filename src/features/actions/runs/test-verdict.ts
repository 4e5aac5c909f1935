import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../../declarations/schemas/payload.ts';
import type { RunTrial } from '../action-work.ts';
import { type ActionTest, recordsOf } from '../declaration/action.ts';
import { harmless } from '../sandbox/text.ts';

/** Maximum characters of one value or mail in a sentence. */
const charactersMax = 500;
/** Keys told of a state that is not as expected. */
const keysMax = 5;

type ExpectedMail = NonNullable<ActionTest['mails']>[number];

/** Why a trial failed the test it was of; undefined if it passed. Lines of text, with what was expected and what was. */
export function testFailureOf(test: ActionTest, trial: RunTrial): string | undefined {
  if (trial.error !== undefined) {
    const where =
      recordsOf(test).length === 1 ? '' : `record ${trial.records} of ${recordsOf(test).length}: `;
    return `${where}${trial.error.code}: ${trial.error.msg}`;
  }
  const reasons = [...mailFailure(test, trial), ...stateFailure(test, trial)];
  return reasons.length === 0 ? undefined : reasons.join('\n');
}

/** Tells the first mail that is another. */
function mailFailure(test: ActionTest, { mails }: RunTrial): string[] {
  const { mails: expected } = test;
  if (expected === undefined) return [];
  const sent = mails.map(({ device: to, name, payload }) => ({
    to,
    name,
    payload: JSON.parse(payload) as JsonObject,
  }));
  if (isDeepStrictEqual(sent, expected)) return [];
  const at = expected.findIndex((mail, index) => !isDeepStrictEqual(mail, sent[index]));
  const first = at === -1 ? expected.length : at;
  const by = mails[first]?.record;
  const isSequence = by !== undefined && recordsOf(test).length > 1;
  return [
    `Mail ${first + 1} is another (${expected.length} expected, ${sent.length} sent):`,
    `  expected: ${mailText(expected[first])}`,
    `  sent:     ${mailText(sent[first])}${isSequence ? ` (by record ${by})` : ''}`,
  ];
}

function mailText(mail: ExpectedMail | undefined): string {
  return mail === undefined ? 'none' : `${mail.name} to ${mail.to} ${jsonText(mail.payload)}`;
}

/** Tells the keys whose values are others. */
function stateFailure({ state = {}, stateAfter }: ActionTest, trial: RunTrial): string[] {
  if (stateAfter === undefined) return [];
  const left = new Map<string, unknown>(Object.entries(state));
  for (const { key, value } of trial.state) {
    if (value === null) left.delete(key);
    else left.set(key, JSON.parse(value) as unknown);
  }
  const expected = new Map<string, unknown>(Object.entries(stateAfter));
  const others = [...new Set([...expected.keys(), ...left.keys()])].filter(
    (key) => !isDeepStrictEqual(expected.get(key), left.get(key)),
  );
  const told = others
    .slice(0, keysMax)
    .flatMap((key) => [
      `The state under ${jsonText(key)} is another after the last record:`,
      `  expected: ${jsonText(expected.get(key))}`,
      `  left:     ${jsonText(left.get(key))}`,
    ]);
  const more = others.length - keysMax;
  return more > 0 ? [...told, `So are ${more} more keys.`] : told;
}

function jsonText(value: unknown): string {
  return value === undefined ? 'none' : harmless(JSON.stringify(value), charactersMax);
}
