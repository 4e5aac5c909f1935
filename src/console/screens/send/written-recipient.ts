import { type ParsedQuery, parseDeviceQuery } from '../devices/device-query.ts';

type WrittenRecipient = { deviceId: string } | (Pick<ParsedQuery, 'filter' | 'flags'> & { text: string });

/** Whom a text means: a device by its id, or all that fit filters; and why it means nobody yet. */
export function recipientOf(text: string): {
  recipient: WrittenRecipient;
  problem: string | undefined;
} {
  const to = text.trim();
  if (to.toLowerCase() === 'all devices')
    return { recipient: { filter: {}, flags: [], text: '' }, problem: undefined };
  if (!/[:<>]/.test(to)) {
    const isId = /^[A-Za-z0-9]{10}$/.test(to);
    const problem =
      'To whom? A device id is 10 letters or digits; for many, filters as in tag:hall, or: all devices.';
    return { recipient: { deviceId: to }, problem: isId ? undefined : problem };
  }
  const { filter, flags, problems } = parseDeviceQuery(to);
  const [problem] = problems;
  return { recipient: problem === undefined ? { filter, flags, text: to } : { deviceId: to }, problem };
}
