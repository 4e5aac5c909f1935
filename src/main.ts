#!/usr/bin/env node
import './core/private-process.ts';

// Any Node since 16 can read this file and what it imports first: an old one is told what is missing, not a stack.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`fleetpost: Node 20.19 or newer is needed; this is Node ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  const { isParent, superviseChild } = await import('./server/supervisor.ts');
  const [, file = '', ...args] = process.argv;
  if (isParent(args)) superviseChild(file, args);
  else {
    // Loaded here: the parent has no use for it.
    const { runCommand } = await import('./server/commands/command.ts');
    await runCommand(process.argv);
  }
}
