import { Screen } from '../frame/frame.tsx';

/** The screen of an address that no other has. */
export function NotFound() {
  return (
    <Screen title="Not here">
      <p class="empty">There is no screen at this address.</p>
    </Screen>
  );
}
