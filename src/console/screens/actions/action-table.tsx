import type { ActionDocument } from '../../../contract/action.ts';
import { hasDraft } from '../../page/drafts.ts';
import { href } from '../../page/router.ts';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { actionDraftKey } from './action-path.ts';
import { triggerWord } from './action-text.ts';
import { actionHealth, countText } from './health.ts';

export interface ActionTableProps {
  fleetId: string;
  items: readonly ActionDocument[];
}

/** Actions, a row each; the name leads to its code. */
export function ActionTable({ fleetId, items }: ActionTableProps) {
  if (items.length === 0) return <p class="empty">None needs attention.</p>;
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Action</th>
            <th>State</th>
            <th class="less">Runs for</th>
            <th class="number less">Version</th>
            <th class="number less">Runs, last minute</th>
            <th class="number less">Behind</th>
            <th class="number">Dead</th>
            <th class="less">Last error</th>
          </tr>
        </thead>
        <tbody>
          {items.map((action) => (
            <ActionRow key={action.name} fleetId={fleetId} action={action} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Triggers that are named in a row; the rest are counted. */
const namedTriggers = 3;

function ActionRow({ fleetId, action }: { fleetId: string; action: ActionDocument }) {
  const { name, on, version, runs_last_minute, behind, dead_letters, last_error, last_failed_at } = action;
  const { mark, word, advice } = actionHealth(action);
  return (
    <tr>
      <td class="cut">
        <a class="link strong" href={href([fleetId, 'actions', name])}>
          {name}
        </a>
        {hasDraft(actionDraftKey(fleetId, name)) && <span class="tag draft-mark">draft</span>}
      </td>
      <td title={advice}>
        <span class={`state is-${mark}`}>{word}</span>
      </td>
      <td class="less">
        <span class="tags">
          {on.slice(0, namedTriggers).map((trigger) => (
            <span key={triggerWord(trigger)} class="tag">
              {triggerWord(trigger)}
            </span>
          ))}
          {on.length > namedTriggers && <span class="hint">and {on.length - namedTriggers}</span>}
        </span>
      </td>
      <td class="number soft less">{version}</td>
      <td class="number less">{countText(runs_last_minute)}</td>
      <td class="number soft less">{countText(behind)}</td>
      <td class="number">
        {dead_letters === 0 ? (
          <span class="faint">0</span>
        ) : (
          <a class="link bad" href={href([fleetId, 'dead-letters'], { action: name })}>
            {countText(dead_letters)}
          </a>
        )}
      </td>
      <td class="cut less">
        {last_error && (
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
        )}
      </td>
    </tr>
  );
}
