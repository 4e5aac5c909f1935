import type { ActionDocument } from '../../../contract/action.ts';
import { actionColumns, triggerText } from '../../../contract/columns/action.ts';
import { ListTable } from '../../lists/table.tsx';
import { hasDraft } from '../../page/drafts.ts';
import { href } from '../../page/router.ts';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { actionDraftKey } from './action-path.ts';
import { actionHealth, countText } from './health.ts';

export interface ActionTableProps {
  fleetId: string;
  items: readonly ActionDocument[];
}

/** Actions, a row each; the name leads to its code. */
export function ActionTable({ fleetId, items }: ActionTableProps) {
  if (items.length === 0) return <p class="empty">None needs attention.</p>;
  return (
    <ListTable
      columns={actionColumns}
      items={items}
      keyOf={({ name }) => name}
      cells={{
        name: ({ name }) => (
          <>
            <a class="link strong" href={href([fleetId, 'actions', name])}>
              {name}
            </a>
            {hasDraft(actionDraftKey(fleetId, name)) && <span class="tag draft-mark">draft</span>}
          </>
        ),
        enabled: (action) => {
          const { mark, word, advice } = actionHealth(action);
          return (
            <span class={`state is-${mark}`} title={advice}>
              {word}
            </span>
          );
        },
        on: ({ on }) => <Triggers on={on} />,
        dead_letters: ({ name, dead_letters }) =>
          dead_letters > 0 && (
            <a class="link bad" href={href([fleetId, 'dead-letters'], { action: name })}>
              {countText(dead_letters)}
            </a>
          ),
        last_error: (action) => <LastError action={action} />,
      }}
    />
  );
}

/** Triggers that are named in a row; the rest are counted. */
const namedTriggers = 3;

function Triggers({ on }: Pick<ActionDocument, 'on'>) {
  return (
    <span class="tags">
      {on.slice(0, namedTriggers).map((trigger) => (
        <span key={triggerText(trigger)} class="tag">
          {triggerText(trigger)}
        </span>
      ))}
      {on.length > namedTriggers && <span class="hint">and {on.length - namedTriggers}</span>}
    </span>
  );
}

function LastError({ action: { last_error, last_failed_at } }: { action: ActionDocument }) {
  return (
    last_error && (
      <>
        {last_failed_at !== null && (
          <span class="faint small">
            <Moment time={last_failed_at} />{' '}
          </span>
        )}
        <code class="small">{last_error.code}</code>{' '}
        <span class="soft small">
          <Untrusted text={last_error.msg.split('\n', 1)[0] ?? ''} lengthMax={120} />
        </span>
      </>
    )
  );
}
