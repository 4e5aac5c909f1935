import { expect, it } from 'vitest';
import { fleetpostProcess } from '../../../harness/server/command.ts';

it('help prints a page of the documents', async () => {
  const { status, stdout } = await fleetpostProcess(['help', 'errors']);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^# Errors\n\nFor /);
  expect(stdout).not.toContain('<!--');
});

it('help prints the help of a command, also of one in a group, and names the page of the same name', async () => {
  const group = await fleetpostProcess(['help', 'mail']);
  expect(group.stdout).toContain('Usage: fleetpost mail');
  const command = await fleetpostProcess(['help', 'device', 'list']);
  expect(command.stdout).toContain('Usage: fleetpost device list');
  expect(command.stdout).toContain('--seen-after');
});

it('help lists the commands, and the topics by folder', async () => {
  const { status, stdout } = await fleetpostProcess(['help']);
  expect(status).toBe(0);
  expect(stdout).toContain('Usage: fleetpost');
  expect(stdout).toMatch(/\n {2}internals +.*architecture.*glossary/);
});

it('help takes a page as another page links to it, and a folder for its pages', async () => {
  const linked = await fleetpostProcess(['help', '../run/service.md#certificates']);
  expect(linked.stdout).toMatch(/^# Running the service\n/);
  const folder = await fleetpostProcess(['help', 'start']);
  expect(folder).toMatchObject({ status: 0, stdout: expect.stringMatching(/start +concepts, install/) });
});

it('help says what was meant, and fails', async () => {
  const topic = await fleetpostProcess(['help', 'configuraton']);
  expect(topic).toMatchObject({ status: 1, stdout: '' });
  expect(topic.stderr).toBe(
    'fleetpost: There is no command or topic "configuraton". Did you mean configuration?\n',
  );
  const command = await fleetpostProcess(['help', 'device', 'lst']);
  expect(command.stderr).toContain('Did you mean device list?');
  const outside = await fleetpostProcess(['help', '../README']);
  expect(outside).toMatchObject({ status: 1, stdout: '' });
});

it('the topics complete', async () => {
  const { stdout } = await fleetpostProcess(['completion', 'bash']);
  expect(stdout).toMatch(/'help'\) words='.*\bserve\b.*\bconfiguration\b/);
});
