import { activeSecondsMax } from '../../core/bounds.ts';
import { integer } from '../../core/config/config-key.ts';

/** What is kept of devices themselves. */
export const deviceKeys = {
  activeSeconds: integer(
    300,
    1,
    activeSecondsMax,
    'How long a device counts as active after it was seen, unless its fleet says otherwise.',
  ),
  secretGraceSecondsMax: integer(
    2_592_000,
    0,
    31_536_000,
    'How long the old secret of a device may go on working beside its new one.',
  ),
};
