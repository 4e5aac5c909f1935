import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { ExportLines } from '../../exports/export-lines.tsx';
import { Act } from '../../parts/act.tsx';
import { shellWord } from '../../parts/hidden-characters.ts';
import type { Query } from '../../server/client.ts';

/** Writes the entries of the audit log that fit to a file. */
export function ExportAudit({ query, flags }: { query: Query; flags: readonly string[] }) {
  const [isAsked, setAsked] = useState(false);
  const command = ['fleetpost audit export', ...flags.map(shellWord)].join(' ');
  return (
    <>
      <Act scope="admin" onClick={() => setAsked(true)}>
        Export what fits
      </Act>
      {isAsked && (
        <ExportLines
          title="Export the audit log"
          path={pathTo('/audit:export', {})}
          query={() => query}
          fileName="audit.ndjson"
          what="entries"
          command={command}
          onClose={() => setAsked(false)}
        >
          <p>All entries that fit the filter, oldest first, an entry a line (NDJSON).</p>
        </ExportLines>
      )}
    </>
  );
}
