import { useState } from 'preact/hooks';
import type { ActionDocument, DeployedActionDocument } from '../../../contract/action.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { goFromDeleted } from '../../page/recent.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { pathOfAction } from './action-path.ts';
import { runsForText } from './action-text.ts';

export interface ActionToolsProps {
  fleetId: string;
  action: ActionDocument;
  onChanged: () => void;
}

/** Enables, disables or deletes an action; what loses something asks first. */
export function ActionTools({ fleetId, action, onChanged }: ActionToolsProps) {
  const { name, enabled } = action;
  const [asked, setAsked] = useState<'disable' | 'delete' | undefined>();
  const { error, submit } = useSubmit();
  const path = pathOfAction(fleetId, name);
  const close = (): void => setAsked(undefined);
  const put = (isEnabled: boolean) => call('PATCH', path, { body: { enabled: isEnabled } });
  const enable = (): void => void submit(() => put(true)).then(onChanged);
  return (
    <>
      {enabled ? (
        <Act scope="admin" onClick={() => setAsked('disable')}>
          Disable
        </Act>
      ) : (
        <Act scope="admin" onClick={enable}>
          Enable
        </Act>
      )}
      <Act scope="admin" kind="bad" onClick={() => setAsked('delete')}>
        Delete
      </Act>
      {error && <span class="wrong">{error.message}</span>}
      {asked === 'disable' && (
        <Confirm title={`Disable ${name}`} work={() => put(false)} onClose={close} onDone={onChanged}>
          It takes no notice of what is stored until it is enabled again, and does not make up for it.
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${name}`}
          work={() => call('DELETE', path)}
          onClose={close}
          onDone={() => goFromDeleted(href([fleetId, 'actions']))}
        >
          It goes for good with its versions, state, runs, log and dead letters.
        </Confirm>
      )}
    </>
  );
}

/** The last change made on the screen of an action: a deployment, with the results of its tests, or a rollback. */
export type Done = ActionDocument & Partial<Pick<DeployedActionDocument, 'tests'>>;

/** Says that a version is deployed or current again, and what makes it run. */
export function DoneNotice({ fleetId, done }: { fleetId: string; done: Done }) {
  const { name, version, tests } = done;
  const passed = tests?.filter((test) => test.passed).length ?? 0;
  return (
    <Banner
      kind="good"
      tools={
        <a class="link" href={href([fleetId, 'actions', name], { tab: 'runs' })}>
          Its runs
        </a>
      }
    >
      {tests === undefined ? `Rolled back to version ${version}.` : `Version ${version} is deployed.`}
      {tests !== undefined && tests.length > 0 && ` ${passed} of ${tests.length} tests passed.`}{' '}
      <Untrusted text={runsForText(done)} lengthMax={500} />
    </Banner>
  );
}
