import { ActionScreen } from './actions/action.tsx';
import { ActionsScreen } from './actions/actions.tsx';
import { NotFound } from './not-found.tsx';
import { SchemaScreen } from './schemas/schema.tsx';
import { SchemasScreen } from './schemas/schemas.tsx';

const kinds = ['datapoint', 'message', 'mail', 'reply'] as const;

/** The screens of whoever writes actions and schemas, in a file that is loaded when one of them is first opened. */
export function DeveloperScreens({ parts }: { parts: readonly string[] }) {
  const [fleetId = '', screen, first, second] = parts;
  if (screen === 'actions' && first === undefined) return <ActionsScreen fleetId={fleetId} />;
  if (screen === 'actions' && first !== undefined)
    return <ActionScreen key={first} fleetId={fleetId} name={first} />;
  if (first === undefined) return <SchemasScreen fleetId={fleetId} />;
  const kind = kinds.find((one) => one === first);
  if (kind !== undefined && second !== undefined)
    return <SchemaScreen key={`${kind}:${second}`} fleetId={fleetId} kind={kind} name={second} />;
  return <NotFound />;
}
