import { open } from 'node:fs/promises';
import { columns, type ExportFile } from './export-file.ts';
import { fieldsOf, type RecordFields } from './record-lines.ts';

/** Rows of one group, which are in memory until they are written. */
const groupRows = 100_000;
const groupBytes = 32 * 1024 * 1024;

const text = (name: string) =>
  ({ name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' }) as const;
const schema = [
  { name: 'records', num_children: columns.length },
  ...(['record_id', 'device_id', 'kind', 'schema'] as const).map(text),
  {
    name: 'stored_at',
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
    repetition_type: 'REQUIRED',
  } as const,
  // As text: a library's own JSON would spell numbers anew.
  text('payload'),
];

/** Columns of text, `stored_at` a time; compressed with Snappy. */
export async function openParquet(path: string): Promise<ExportFile> {
  const { ParquetWriter, fileWriter } = await import('hyparquet-writer');
  // The library opens what is there, with the rights that it has.
  await (await open(path, 'w', 0o600)).close();
  const writer = new ParquetWriter({ writer: fileWriter(path), schema, createdBy: 'fleetpost' });
  let rows: RecordFields[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    if (rows.length === 0) return;
    const columnData = columns.map((name) => ({
      name,
      data: rows.map((row) => (name === 'stored_at' ? new Date(row[name]) : row[name])),
      statistics: name !== 'payload',
    }));
    await writer.write({ columnData, rowGroupSize: groupRows });
    rows = [];
    bytes = 0;
  };
  return {
    async write(lines) {
      for (const line of lines) {
        rows.push(fieldsOf(line));
        bytes += line.length;
        if (rows.length >= groupRows || bytes >= groupBytes) await flush();
      }
    },
    async finish() {
      await flush();
      await writer.finish();
      const handle = await open(path, 'r+');
      await handle.sync();
      await handle.close();
    },
    abandon: async () => {},
  };
}
