import { expect, it } from 'vitest';
import {
  changeOfFleet,
  flagsOfChange,
  removesRecords,
  textsOf,
} from '../../../../src/console/screens/fleet/limit-change.ts';
import type { FleetDocument } from '../../../../src/contract/fleet.ts';

const fleet: FleetDocument = {
  fleet_id: 'FLEET001',
  name: 'Hall',
  created_at: '2026-01-01T00:00:00Z',
  deleting_since: null,
  mailbox_mails_max: 100,
  mail_ttl_seconds: 604_800,
  mail_requeues_max: null,
  requests_per_second_max: 0,
  device_requests_per_second_max: 50,
  device_bytes_per_second_max: 0,
  active_seconds: 120,
  log_retention_seconds: 86_400,
  log_bytes_max: null,
  mail_bytes_max: null,
  own: ['mailbox_mails_max', 'log_retention_seconds'],
};
const texts = textsOf(fleet);

it('fields have the limits that are the fleet’s own, and are empty for those of the configuration', () => {
  expect(texts).toMatchObject({
    mailbox_mails_max: '100',
    log_retention_seconds: '1 d',
    mail_ttl_seconds: '',
  });
  expect(changeOfFleet(fleet, 'Hall', texts)).toEqual({});
});

it('a change has the members that were typed; an emptied one is null, which is the configuration’s', () => {
  const typed = { ...texts, mailbox_mails_max: '', mail_ttl_seconds: '2 h' };
  const change = changeOfFleet(fleet, 'Yard', typed);
  expect(change).toEqual({ name: 'Yard', mailbox_mails_max: null, mail_ttl_seconds: 7_200 });
  const flags = ['--name', 'Yard', '--mailbox-mails-max', 'default', '--mail-ttl-seconds', '7200'];
  expect(flagsOfChange(change ?? {})).toEqual(flags);
});

it('there is none while a text is no number', () => {
  expect(changeOfFleet(fleet, 'Hall', { ...texts, log_bytes_max: '10 GB' })).toBeUndefined();
});

it.each([
  ['less time', { log_retention_seconds: 3_600 }, true],
  ['more time', { log_retention_seconds: 172_800 }, false],
  ['the time of the configuration, whatever it is', { log_retention_seconds: null }, true],
  ['a size where there was none', { log_bytes_max: 1_024 }, true],
  ['no size of its own', { log_bytes_max: null }, false],
  ['a smaller mailbox', { mailbox_mails_max: 1 }, false],
])('%s may remove records: %o', (_, change, removes) => {
  expect(removesRecords(fleet, change)).toBe(removes);
});
