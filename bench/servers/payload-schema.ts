export const datapointSchema = 'reading';
export const messageSchema = 'note';

/** Schema that datapoints and messages must match, whoever checks it. */
export const payloadSchema = {
  type: 'object',
  required: ['celsius', 'sensor'],
  properties: { celsius: { type: 'number' }, sensor: { type: 'string', maxLength: 256 } },
  additionalProperties: false,
};

/** A body that matches, of `bytes` bytes. */
export function payloadOf(bytes: number): string {
  const empty = JSON.stringify({ celsius: 21.5, sensor: '' });
  return JSON.stringify({ celsius: 21.5, sensor: 'x'.repeat(bytes - empty.length) });
}
