import fc from 'fast-check';
import { expect, it } from 'vitest';
import { generateUuid, isUuid, uuidTimeMs } from '../../../src/core/uuid.ts';
import {
  decodeReplaceable,
  isMarked,
  isReplaceableList,
  mailOfKey,
  markReplaceable,
  replaceableMailsMax,
  withMail,
  withoutMail,
} from '../../../src/domain/mail/replaceable-mails.ts';

const none = Buffer.alloc(0);

function markedId(): Buffer {
  const id = generateUuid();
  markReplaceable(id);
  return id;
}

it('D31: a marked id is a UUIDv7 of the same time, and few others look like one', () => {
  const id = generateUuid();
  const timeMs = uuidTimeMs(id);
  markReplaceable(id);
  expect([isUuid(id), uuidTimeMs(id), isMarked(id)]).toEqual([true, timeMs, true]);
  // One of 4,096 by chance; each millisecond draws anew.
  const marked = Array.from({ length: 4_096 }, (_, ms) => isMarked(generateUuid(Date.now() + ms)));
  expect(marked.filter(Boolean).length).toBeLessThan(16);
});

it('D31: a list knows of each key the mail that was sent last, whatever is added and removed', () => {
  const step = fc.record({ adds: fc.boolean(), key: fc.nat(replaceableMailsMax + 8).map((n) => `k-${n}`) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      let list: Buffer = none;
      /** In the order of sending, as a map has its keys. */
      const model = new Map<string, Buffer>();
      for (const { adds, key } of steps) {
        const before = model.get(key);
        model.delete(key);
        if (adds) {
          const mailId = markedId();
          list = withMail(list, mailId, key);
          model.set(key, mailId);
          const [oldest = ''] = model.keys();
          if (model.size > replaceableMailsMax) model.delete(oldest);
        } else if (before === undefined) expect(withoutMail(list, markedId())).toBeUndefined();
        else list = withoutMail(list, before) ?? none;
        expect(isReplaceableList(list)).toBe(model.size > 0);
      }
      expect(new Map(decodeReplaceable(list).map(({ key, mailId }) => [key, mailId]))).toEqual(model);
      for (const [key, mailId] of model) expect(mailOfKey(list, key)).toEqual(mailId);
      expect(mailOfKey(list, 'other')).toBeUndefined();
    }),
  );
});

it('of a damaged list nothing is known, and the next mail begins a new one', () => {
  const [first, second] = [markedId(), markedId()];
  const list = withMail(withMail(none, first, 'set-point'), second, 'mode');
  for (let length = 1; length < list.length; length += 1) {
    const damaged = list.subarray(0, length);
    if (isReplaceableList(damaged)) continue;
    expect([mailOfKey(damaged, 'mode'), withoutMail(damaged, second)]).toEqual([undefined, undefined]);
    expect(decodeReplaceable(withMail(damaged, first, 'mode'))).toEqual([{ mailId: first, key: 'mode' }]);
  }
  expect(isReplaceableList(none)).toBe(false);
  expect(isReplaceableList(withMail(none, Buffer.alloc(16), 'mode'))).toBe(false);
});
