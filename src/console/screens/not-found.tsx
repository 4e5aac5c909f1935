import { Head } from '../frame/frame.tsx';

/** At an address that no screen has. */
export function NotFound() {
  return (
    <>
      <Head title="Not here" />
      <div class="body">
        <p class="empty">There is no screen at this address.</p>
      </div>
    </>
  );
}
