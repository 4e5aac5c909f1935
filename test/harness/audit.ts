import type { TestServer } from './server.ts';

/** An entry of the audit log, as the admin API lists it. */
export interface AuditEntry {
  entry: number;
  time: string;
  book: string;
  by: { kind: string; id: string | null; name: string | null };
  method: string;
  route: string;
  about: Record<string, string | number>;
  status: number | null;
  error: string | null;
  address: string | null;
  forwarded_for: string | null;
  omitted: number;
}

/** All entries that the query selects, over all pages. */
export async function auditEntries(of: TestServer, query = ''): Promise<AuditEntry[]> {
  const items: AuditEntry[] = [];
  let next: string | null = null;
  do {
    const after: string = next === null ? '' : `&after=${next}`;
    const path = `/audit?limit=1000${query}${after}`;
    const { body } = await of.admin<{ items: AuditEntry[]; next: string | null }>('GET', path);
    items.push(...body.items);
    next = body.next;
  } while (next !== null);
  return items;
}
