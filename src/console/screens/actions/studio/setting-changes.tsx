import { triggerText } from '../../../../contract/columns/action.ts';
import { Fact } from '../../../parts/facts.tsx';
import { Untrusted } from '../../../parts/untrusted.tsx';
import { type ActionText, testsIn, triggerIn } from '../action-text.ts';

type Change = readonly [what: string, before: string, after: string];

/** Settings as sentences; of JSON that it changed, and how long it is. */
function settingsOf(text: ActionText): readonly (readonly [string, string, string])[] {
  const list = (values: readonly string[], none: string): string =>
    values.length === 0 ? none : values.join(', ');
  const triggers = text.on.map((one) => triggerText(triggerIn(one)));
  return [
    ['Language', text.language, text.language],
    ['Runs for', list(triggers, 'nothing'), list(triggers, 'nothing')],
    ['Devices', list(text.devices, 'all'), text.devices.join()],
    ['Tags', list(text.tags, 'any'), text.tags.join()],
    ['Payloads', text.where.trim() === '' ? 'any' : 'those that match a schema', text.where.trim()],
    ['Tests', String(testsIn(text)?.length ?? 'no list'), text.tests],
  ];
}

function changesBetween(before: ActionText, after: ActionText): Change[] {
  const old = settingsOf(before);
  const changes = settingsOf(after).flatMap(([what, shown, whole], index): Change[] => {
    const [, shownBefore = '', wholeBefore = ''] = old[index] ?? [];
    return whole === wholeBefore ? [] : [[what, shownBefore, shown]];
  });
  const rate: Change[] = after.rate === '' ? [] : [['Runs a second', 'as it is', after.rate]];
  return [...changes, ...rate];
}

/** Lists what differs beside the code. */
export function SettingChanges({ before, after }: { before: ActionText; after: ActionText }) {
  const changes = changesBetween(before, after);
  if (changes.length === 0) return null;
  return (
    <dl class="facts">
      {changes.map(([what, old, now]) => (
        <Fact key={what} name={what}>
          {old === now ? (
            'changed'
          ) : (
            <>
              <del class="soft">
                <Untrusted text={old} />
              </del>{' '}
              →{' '}
              <ins>
                <Untrusted text={now} />
              </ins>
            </>
          )}
        </Fact>
      ))}
    </dl>
  );
}
