import { readFileSync } from 'node:fs';
import { CompletionContext } from '@codemirror/autocomplete';
import { javascript } from '@codemirror/lang-javascript';
import { ensureSyntaxTree } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { expect, it } from 'vitest';
import { completeAction } from '../../../src/console/editor/completion.ts';
import { readApi } from '../../../src/console/editor/shapes.ts';

const api = readApi(
  readFileSync(new URL('../../../src/features/actions/pool/api.ts', import.meta.url), 'utf8'),
);
const climate = {
  required: ['celsius'],
  properties: {
    celsius: { type: 'number', maximum: 120, description: 'Of the air' },
    place: { type: 'object', properties: { floor: { type: 'integer' } } },
    'not a name': {},
  },
};

/** Completions offered at the `|` of a source. */
function offered(source: string, payloads: readonly unknown[] = [climate]): string[] {
  const pos = source.indexOf('|');
  const made = EditorState.create({
    doc: source.replace('|', ''),
    extensions: javascript({ typescript: true }),
  });
  // A state is made with what is parsed within 20 ms, and the next one has the rest, as in an editor.
  ensureSyntaxTree(made, made.doc.length, 10_000);
  const { state } = made.update({});
  const complete = completeAction(api, () => ({ payloads, mailNames: ['set_fan'] }), String);
  return (complete(new CompletionContext(state, pos, false))?.options ?? []).map(({ label }) => label);
}

const within = (body: string): string =>
  `import type { Action } from 'fleetpost/action';\nconst a: Action = async (record, fleet) => {\n${body}\n};\nexport default a;\n`;

it('every member of the API that actions are written against is known', () => {
  expect([...api.keys()]).toEqual(
    expect.arrayContaining(['ActionRecord', 'Device', 'SendOptions', 'ActionState', 'Fleet']),
  );
  expect(offered(within('fleet.|'))).toEqual(['send', 'sendToTag', 'device', 'state', 'log']);
  expect(offered(within('fleet.state.|'))).toEqual(['get', 'set', 'delete']);
  expect(offered(within('record.|'))).toEqual(
    expect.arrayContaining(['id', 'kind', 'device', 'name', 'payload', 'time', 'recordedAt']),
  );
});

it('members of a payload are those of its schemas, followed through variables and patterns', () => {
  expect(offered(within('record.payload.ce|'))).toEqual(['celsius', 'place']);
  expect(offered(within('record.payload.place?.|'))).toEqual(['floor']);
  expect(offered(within('const { place } = record.payload;\nplace!.|'))).toEqual(['floor']);
  expect(offered(within('const { | } = record.payload;'))).toEqual(['celsius', 'place']);
  expect(offered('export default async ({ payload: { place }, device: id }, fleet) => { place.| }')).toEqual(
    [],
  );
  expect(offered('export default async ({ payload }, fleet) => { payload.| }')).toEqual(['celsius', 'place']);
  const both = [climate, { anyOf: [{ properties: { bar: {} } }, { properties: { celsius: {} } }] }];
  expect(offered(within('record.payload.|'), both)).toEqual(['celsius', 'place', 'bar']);
});

it('what a call returns is known, and what is not known offers nothing', () => {
  expect(offered(within('const door = await fleet.device(record.device);\ndoor?.|'))).toContain(
    'mailboxSize',
  );
  expect(offered(within('(await fleet.device("x")).|'))).toContain('lastSeen');
  expect(offered(within('nothing.|'))).toEqual([]);
  expect(offered(within('[1].map((record) => record.|);'))).toEqual([]);
  expect(offered(within("await fleet.send(record.device, '|')"))).toEqual(['set_fan']);
  expect(offered(within("await fleet.send('|')"))).toEqual([]);
});

it('schemas that are large, deep or no schemas hold nothing up', () => {
  const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, {}]));
  expect(offered(within('record.payload.|'), [{ properties }]).length).toBe(500);
  let deep: object = { properties: { end: {} } };
  for (let level = 0; level < 100; level += 1) deep = { allOf: [deep] };
  expect(offered(within('record.payload.|'), [deep, null, 7, { properties: [] }])).toEqual([]);
});
