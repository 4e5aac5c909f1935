import { href } from '../../page/router.ts';
import type { SchemaUse } from './schema-uses.ts';

export interface UsedByProps {
  fleetId: string;
  uses: readonly SchemaUse[];
  isShort?: boolean;
}

/** Uses that are named in a row of a table; the rest are counted. */
const namedMax = 3;

/** The actions, forwarders and consumers that name a schema. */
export function UsedBy({ fleetId, uses, isShort = false }: UsedByProps) {
  const shown = isShort ? uses.slice(0, namedMax) : uses;
  if (uses.length === 0) return isShort ? null : <p class="soft">Nothing names it.</p>;
  return (
    <ul class="tags">
      {shown.map(({ what, name }) => (
        <li key={`${what} ${name}`}>
          <a class="tag" href={href([fleetId, `${what}s`, name])}>
            {what} {name}
          </a>
        </li>
      ))}
      {uses.length > shown.length && <li class="hint">and {uses.length - shown.length}</li>}
    </ul>
  );
}
