import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { databaseOf, type ServerReport } from '../server/server.ts';
import { queryDatabase } from './log.ts';

/** The audit log as it is kept. */
export async function auditText({ data }: ServerReport): Promise<string> {
  const url = databaseOf(data);
  if (url === undefined) return readFileSync(join(data, 'control', 'data.mdb'), 'latin1');
  const rows = await queryDatabase<{ text: string }>(url, 'SELECT a::text AS text FROM audit a');
  return rows.map(({ text }) => text).join();
}

/**
 * Tells whether these bytes are anywhere in a server's storage: in a file of its data folder, or in a row of its
 * database.
 */
export async function isStored(report: ServerReport, bytes: string | Buffer): Promise<boolean> {
  // The token of the folder's owner is there for whoever can read the folder.
  const files = readdirSync(report.data, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  if (files.some((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(bytes))) return true;
  const url = databaseOf(report.data);
  if (url === undefined) return false;
  const tables = await queryDatabase<{ tablename: string }>(
    url,
    "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
  );
  const hex = Buffer.from(bytes).toString('hex');
  for (const { tablename } of tables) {
    const rows = await queryDatabase<{ text: string }>(url, `SELECT t::text AS text FROM "${tablename}" t`);
    if (rows.some(({ text }) => text.includes(hex) || text.includes(String(bytes)))) return true;
  }
  return false;
}
