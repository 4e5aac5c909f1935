import { expect, it } from 'vitest';
import { field } from '../../../../src/domain/fields.ts';
import { columnsOf, DatabaseTable } from '../../../../src/storage/postgres/schema/table.ts';

it('a field that is declared later is added to its table, which the first migration makes as before', () => {
  const fields = { id: field.uuid, triesMax: field.optional(field.count(9), 2), dueAtMs: field.shardTime };
  const table = new DatabaseTable({ table: 'task', columns: columnsOf(fields), key: ['id'] });
  expect(table.create('WITH (fillfactor = 70)')).toBe(
    'CREATE TABLE task (id bytea NOT NULL, due_at_ms bigint NOT NULL, PRIMARY KEY (id)) WITH (fillfactor = 70);',
  );
  expect(table.alter(2)).toBe('ALTER TABLE task ADD COLUMN tries_max smallint;');
  expect(table.alter(3)).toBe('');
});

it('a text that is declared later is empty in the rows that are there, and an optional one null', () => {
  const fields = { id: field.uuid, title: field.text(9, 2), place: field.optional(field.text(9), 2) };
  const table = new DatabaseTable({ table: 'task', columns: columnsOf(fields), key: ['id'] });
  expect(table.alter(2).split('\n')).toEqual([
    "ALTER TABLE task ADD COLUMN title text NOT NULL DEFAULT '';",
    'ALTER TABLE task ADD COLUMN place text;',
  ]);
});
