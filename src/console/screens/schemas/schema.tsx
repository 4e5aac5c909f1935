import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { beginDraft, hasDraft } from '../../page/drafts.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { open } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';
import { SchemaEditor } from './schema-editor.tsx';
import { newSchema, type SchemaName, schemaDraftKey } from './schema-text.ts';

/** One schema: written, tried on a sample, and stored. */
export function SchemaScreen({ fleetId, kind, name }: SchemaName) {
  const path = pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', { fleet_id: fleetId, kind, name });
  // Byte for byte: a parsed one would lose the order and the digits of its author.
  const stored = useResource(path, async (signal) => ({
    text: await (await open('GET', path, { signal })).text(),
  }));
  const key = schemaDraftKey(fleetId, kind, name);
  const isMissing = stored.error?.code === 'schema_not_found';
  if (isMissing && !hasDraft(key)) {
    const isName = /^[A-Za-z0-9_-]{1,255}$/.test(name);
    return (
      <Screen title={name} beside={<span class="tag">{kind}</span>}>
        <Banner
          tools={
            isName ? (
              <Act scope="provision" onClick={() => beginDraft(key, newSchema)}>
                Write it
              </Act>
            ) : undefined
          }
        >
          <p>
            There is no {kind} schema of this name in the fleet.{' '}
            <a href={href([fleetId, 'schemas'])}>All schemas</a>
          </p>
        </Banner>
      </Screen>
    );
  }
  if (stored.value === undefined && !isMissing) {
    return (
      <Screen title={name} beside={<span class="tag">{kind}</span>}>
        <Loaded resource={stored}>{() => null}</Loaded>
      </Screen>
    );
  }
  return (
    <SchemaEditor
      fleetId={fleetId}
      kind={kind}
      name={name}
      current={stored.value ?? newSchema}
      isNew={stored.value === undefined}
      onStored={stored.refresh}
    />
  );
}
