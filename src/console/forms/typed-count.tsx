import { useState } from 'preact/hooks';
import { Field } from './field.tsx';

/** A question about more than so many wants their number typed. */
export const typedFrom = 200;

/** The number that is to be typed before something is done with so many; `isMissing` until it is. */
export function useTypedCount(count: number | undefined) {
  const [typed, setTyped] = useState('');
  if (count === undefined || count <= typedFrom) return { field: null, isMissing: false };
  return {
    field: (
      <Field
        label={`To confirm, type ${count.toLocaleString('en')}`}
        value={typed}
        onText={setTyped}
        inputMode="numeric"
      />
    ),
    isMissing: typed.replace(/\D/g, '') !== String(count),
  };
}
