import type { ActionDocument, DeployedActionDocument } from '../../../contract/action.ts';
import { href } from '../../page/router.ts';
import { Banner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { runsForText } from './action-text.ts';

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
