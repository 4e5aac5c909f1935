import { describe, expect, it } from 'vitest';
import { type FleetSnapshot, Fleets, type SchemaText, updateOf } from '../../src/declarations/fleet.ts';
import { unwatched } from '../../src/declarations/schemas/schema.ts';

const fleet = { fleetId: 'GARDEN01', name: '', createdAtMs: 1 };
const schemas = Array.from(
  { length: 1_000 },
  (_, n): SchemaText => ({ kind: 'message', name: `s${n}`, text: '{"type":"object"}' }),
);
const before: FleetSnapshot = { fleet, schemas };

/** Fleets of a thread that has these, and the names of what it has once it took the update. */
function namesAfter(after: FleetSnapshot): string[] {
  const options = { settings: unwatched.settings, defersCompiling: true, onDisabled() {} };
  const fleets = new Fleets([before], options);
  fleets.update(structuredClone(updateOf(before, after)));
  return [...schemas, { name: 'new' }].flatMap(({ name }) => {
    try {
      return fleets.schema('GARDEN01', 'message', name).disabled ?? name;
    } catch {
      return [];
    }
  });
}

describe('what a change of a fleet tells the threads', () => {
  it('is no schema that they have: a change of the name sent all 64 MB', () => {
    const after = { fleet: { ...fleet, name: 'Garden' }, schemas };
    expect(updateOf(before, after)).toEqual({ fleet: after.fleet, put: [], deleted: [] });
    expect(namesAfter(after)).toEqual(schemas.map(({ name }) => name));
  });

  it('is the schema that was put, deleted or disabled', () => {
    const [first, second, ...others] = schemas as [SchemaText, SchemaText, ...SchemaText[]];
    const disabled = { ...second, disabled: 'slow' };
    const put: SchemaText = { kind: 'message', name: 'new', text: '{}' };
    const after = { fleet, schemas: [disabled, ...others, put] };
    expect(updateOf(before, after)).toEqual({
      fleet,
      put: [disabled, put],
      deleted: [{ kind: 'message', name: first.name }],
    });
    expect(namesAfter(after)).toEqual(['slow', ...others.map(({ name }) => name), 'new']);
  });

  it('is all of a fleet that they do not know, and nothing of one that is being deleted', () => {
    expect(updateOf(undefined, before)).toEqual({ fleet, put: schemas, deleted: [] });
    const after = { fleet: { ...fleet, deletingSinceMs: 2 }, schemas };
    expect(updateOf(before, after)).toEqual({ fleet: after.fleet, put: [], deleted: [] });
    expect(namesAfter(after)).toEqual([]);
  });
});
