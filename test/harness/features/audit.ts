import type { AuditEntryDocument } from '../../../src/contract/access/audit.ts';
import type { ListDocument } from '../../../src/contract/document.ts';
import type { TestServer } from '../server/server.ts';

/** All entries that the query selects, over all pages. */
export async function auditEntries(of: TestServer, query = ''): Promise<AuditEntryDocument[]> {
  const items: AuditEntryDocument[] = [];
  let next: string | null = null;
  do {
    const after: string = next === null ? '' : `&after=${next}`;
    const path = `/audit?limit=1000${query}${after}`;
    const { body } = await of.admin<ListDocument<AuditEntryDocument>>('GET', path);
    items.push(...body.items);
    next = body.next;
  } while (next !== null);
  return items;
}
