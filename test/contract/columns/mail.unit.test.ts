import { expect, it } from 'vitest';
import { targetText } from '../../../src/contract/columns/mail.ts';
import { deviceFilter } from '../../../src/contract/device.ts';

it('each filter of a broadcast is in the words for whom it is', () => {
  for (const name of Object.keys(deviceFilter.properties)) {
    const value = name === 'tag' ? ['hall'] : name === 'enabled' ? false : 'any';
    expect(targetText({ to: { [name]: value } }), name).not.toBe('all devices');
  }
  expect(targetText({ to: { tag: ['hall', 'lamp'], state: 'offline' } })).toBe('tag hall, lamp; offline');
  expect(targetText({ to: { all: true } })).toBe('all devices');
  expect(targetText({ to: { devices: 3 } })).toBe('3 listed');
});
