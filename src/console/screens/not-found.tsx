import { Screen } from '../frame/frame.tsx';

/** At an address that no screen has. */
export function NotFound() {
  return (
    <Screen title="Not here">
      <p class="empty">There is no screen at this address.</p>
    </Screen>
  );
}
