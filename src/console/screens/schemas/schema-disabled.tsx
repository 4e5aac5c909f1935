import { pathTo } from '../../../contract/routes/path.ts';
import { Banner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useDocument } from '../../server/resource.ts';
import type { SchemaName } from './schema-text.ts';

/** Why bodies for it are refused now. */
export function SchemaDisabled({ fleetId, kind, name }: SchemaName) {
  const path = pathTo('/fleets/{fleet_id}/schemas', { fleet_id: fleetId });
  const list = useDocument(path, 15);
  const reason = list.value?.items.find((one) => one.kind === kind && one.name === name)?.disabled ?? null;
  if (reason === null) return null;
  return (
    <Banner kind="bad">
      Disabled: <Untrusted text={reason} />. Its bodies are answered 503 until it is stored again or the
      server restarts.
    </Banner>
  );
}
