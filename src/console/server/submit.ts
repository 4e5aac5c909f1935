import { useState } from 'preact/hooks';
import { CallError } from './call-error.ts';

/** Runs what changes something, one at a time, and keeps why it failed until it is tried again. */
export function useSubmit() {
  const [error, setError] = useState<CallError | undefined>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (work: () => Promise<unknown>): Promise<boolean> => {
    if (isBusy) return false;
    setBusy(true);
    setError(undefined);
    try {
      await work();
      return true;
    } catch (failure) {
      if (!(failure instanceof CallError)) throw failure;
      setError(failure);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { error, isBusy, submit };
}
