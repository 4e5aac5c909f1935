import { Screen } from '../frame/frame.tsx';
import { href, path } from '../page/router.ts';

/** The screen of an address that no other has. */
export function NotFound() {
  const [fleetId = ''] = path.value;
  return (
    <Screen title="Not here">
      <p>
        There is no screen at this address. <a href={href([fleetId])}>To the first page of the fleet</a>
      </p>
    </Screen>
  );
}
