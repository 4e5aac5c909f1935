import { Ask } from '../../forms/dialogs.tsx';
import { actingKeys, areKeysShown, combinations, keyMeanings, type ScreenKey } from '../../page/keys.ts';

/** Lists all keys; those that do nothing on the screen behind it are faint. */
export function KeyList() {
  const acting = actingKeys();
  const names: Partial<Record<ScreenKey, string>> = { ' ': 'Space' };
  return (
    <Ask
      title="Keys"
      onClose={() => {
        areKeysShown.value = false;
      }}
    >
      <dl class="keys">
        {Object.entries(keyMeanings).map(([key, meaning]) => (
          <div key={key} class={acting.has(key) ? '' : 'soft'}>
            <dt>
              <kbd>{names[key as ScreenKey] ?? key}</kbd>
            </dt>
            <dd>
              {meaning}
              {!acting.has(key) && <span class="hint"> (not on this screen)</span>}
            </dd>
          </div>
        ))}
        {combinations.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Ask>
  );
}
