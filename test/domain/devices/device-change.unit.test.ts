import fc from 'fast-check';
import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import type { Device, DeviceChange } from '../../../src/domain/devices/device.ts';
import { addedCounts, decideChange, withoutOldSecret } from '../../../src/domain/devices/device-change.ts';
import { undescribed } from '../../../src/domain/devices/device-fields.ts';

const digestOf = (byte: number): Buffer => Buffer.alloc(32, byte);
const before: Device = {
  device: deviceKeyOf('FLEET001', 'DEVICE0001'),
  enabled: true,
  secretDigests: [digestOf(1)],
  ...undescribed,
  name: 'pump',
  tags: ['a', 'b'],
  createdAtMs: 1,
};
const rotating: Device = { ...before, secretDigests: [digestOf(2), digestOf(1)], oldSecretUntilMs: 1_000 };
const disabled: Device = { ...before, enabled: false };
const rotation = (digest: Buffer, oldUntilMs?: number) => ({ rotation: { digest, oldUntilMs } });

/** Cases: the effect on the device's streams, and the secrets it has afterwards. */
it.each<[string, Device, DeviceChange, 'endedStreams' | 'recheckedStreams' | undefined, number[]]>([
  [
    'D21: to disable a device ends its streams and keeps its secrets',
    before,
    { enabled: false },
    'endedStreams',
    [1],
  ],
  ['D21: and so does a change of one that is disabled', disabled, { name: 'x' }, 'endedStreams', [1]],
  ['D21: to rename it does not', before, { name: 'x' }, undefined, [1]],
  ['D21: nor does it end one during a rotation', rotating, { name: 'x' }, undefined, [2, 1]],
  [
    'D3: both secrets that are set have no end',
    rotating,
    { secretDigests: [digestOf(2), digestOf(1)] },
    'endedStreams',
    [2, 1],
  ],
  ['D3: a rotation keeps the old secret for its time', before, rotation(digestOf(2), 9), undefined, [2, 1]],
  ['D3, D21: without one it ends at once', before, rotation(digestOf(2)), 'endedStreams', [2]],
  [
    'D3, D21: a third secret drops the oldest',
    rotating,
    rotation(digestOf(3), 9),
    'recheckedStreams',
    [3, 2],
  ],
  [
    'D3, D21: secrets that are set end all others',
    rotating,
    { secretDigests: [digestOf(1)] },
    'endedStreams',
    [1],
  ],
])('%s', (_, device, change, streams, digests) => {
  const decision = decideChange(device, change);
  expect(decision).toMatchObject({ result: 'changed', streams });
  const after = 'after' in decision ? decision.after : device;
  expect(after.secretDigests).toEqual(digests.map(digestOf));
});

it('D3: to set the newest secret again changes nothing, not even during a rotation', () => {
  for (const device of [before, rotating]) {
    const newest = new Uint8Array(device.secretDigests[0] ?? []);
    expect(decideChange(device, { secretDigests: [newest] })).toEqual({ result: 'unchanged' });
  }
});

it('D3: when the time of the old secret is over, the newer one is left', () => {
  expect(withoutOldSecret(rotating)).toEqual({
    ...before,
    secretDigests: [digestOf(2)],
    oldSecretUntilMs: undefined,
  });
});

it('a change with too many tags changes nothing', () => {
  const change = { name: 'x', addTags: ['b', 'c'], tagsMax: 2 };
  expect(decideChange(before, change)).toEqual({ result: 'too_many_tags' });
  expect(decideChange(before, { ...change, removeTags: ['a'] })).toMatchObject({
    result: 'changed',
    after: { tags: ['b', 'c'] },
  });
});

const tags = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'));
const change: fc.Arbitrary<DeviceChange> = fc.record(
  {
    enabled: fc.boolean(),
    name: fc.constantFrom('pump', 'valve'),
    tags,
    addTags: tags,
    secretDigests: fc.constantFrom([digestOf(1)], [digestOf(2)], [digestOf(2), digestOf(1)]),
  },
  { requiredKeys: [] },
);

it('a change that is applied again changes nothing, and one that says so has changed nothing', () => {
  fc.assert(
    fc.property(fc.constantFrom(before, rotating, disabled), change, (device, changed) => {
      const first = decideChange(device, changed);
      if (first.result === 'changed') {
        expect(first.after).not.toEqual(device);
        expect(decideChange(first.after, changed)).toEqual({ result: 'unchanged' });
      } else {
        const { enabled = device.enabled, name = device.name } = changed;
        expect(device).toMatchObject({ enabled, name });
      }
    }),
  );
});

it('what a fleet counts is the sum of what its devices add', () => {
  const state = fc.constantFrom(undefined, { enabled: true }, { enabled: false });
  fc.assert(
    fc.property(fc.array(state), (states) => {
      const sum = { devices: 0, disabled: 0 };
      let last: { enabled: boolean } | undefined;
      for (const next of states) {
        const { devices, disabled: off } = addedCounts(last, next);
        sum.devices += devices;
        sum.disabled += off;
        last = next;
      }
      expect(sum).toEqual({ devices: last ? 1 : 0, disabled: last && !last.enabled ? 1 : 0 });
    }),
  );
});
