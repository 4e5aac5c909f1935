import { nameLengthMax } from '../../core/bounds.ts';
import { field, picked, type RecordOf } from '../fields.ts';

/**
 * Fields that operators set of a device besides its credentials. Documents, lines of imports and exports, and rows of
 * databases name them as they are named here.
 */
export const descriptionFields = {
  name: field.text(nameLengthMax),
  tags: field.texts,
};
export type Description = RecordOf<typeof descriptionFields>;

/** Of a device that nobody has described. */
export const undescribed: Description = { name: '', tags: [] };

/** How a device, or what has its fields, is described. */
export const descriptionOf = (described: Description): Description => picked(descriptionFields, described);

/** All fields of a device besides its credentials. What came later is absent in older records, and so where it is ''. */
export const deviceFields = { ...descriptionFields, createdAtMs: field.time };
