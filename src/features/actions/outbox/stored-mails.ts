/**
 * Mails as stored: a payload is there once, however many devices it goes to. Those of before have their own payload
 * each, and no `payloads`.
 */
export interface StoredMails<Mail> {
  /** `payload`: its index in `payloads`. */
  mails: readonly (Omit<Mail, 'payload'> & { payload: number | Uint8Array })[];
  payloads?: readonly Uint8Array[];
}

interface WithPayload {
  payload: Buffer;
}

/** Payloads are told apart by their buffer, which mails of one send share. */
export function storedMails<Mail extends WithPayload>(mails: readonly Mail[]): StoredMails<Mail> {
  const places = new Map<Buffer, number>();
  const stored = mails.map((mail) => {
    const place = places.get(mail.payload) ?? places.size;
    places.set(mail.payload, place);
    return { ...mail, payload: place };
  });
  return { mails: stored, payloads: [...places.keys()] };
}

/** Copies the payloads, and has mails share them. @throws Error if they are not what `storedMails` made. */
export function readMails<Mail extends WithPayload>({ mails, payloads = [] }: StoredMails<Mail>): Mail[] {
  if (!Array.isArray(mails) || !Array.isArray(payloads)) throw new Error('not the mails of a run');
  const copies = payloads.map((payload) => Buffer.from(payload));
  let last: Buffer | undefined;
  return mails.map((mail): Mail => {
    const { payload } = mail as StoredMails<Mail>['mails'][number];
    if (typeof payload === 'number') last = copies[payload];
    else if (last?.equals(payload) !== true) last = Buffer.from(payload);
    if (last === undefined) throw new Error('a mail without its payload');
    return { ...(mail as Mail), payload: last };
  });
}
