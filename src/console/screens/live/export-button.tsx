import { useState } from 'preact/hooks';
import { lazyScreen } from '../../frame/lazy-screen.tsx';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import type { ExportRecordsProps } from './export-records.tsx';

const ExportRecords = lazyScreen(async () => (await import('../set-up.tsx')).ExportRecords);

/** Writes what fits the filter of the screen to a file. */
export function ExportButton(props: Omit<ExportRecordsProps, 'onClose'>) {
  const [isAsked, setAsked] = useState(search.value.has('export'));
  return (
    <>
      <Act onClick={() => setAsked(true)} title="To a file, of any span">
        Export what fits
      </Act>
      {isAsked && <ExportRecords {...props} onClose={() => setAsked(false)} />}
    </>
  );
}
