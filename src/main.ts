#!/usr/bin/env node
import { isParent, superviseChild } from './cluster/parent.ts';

const [, file = '', ...args] = process.argv;
if (isParent(args)) superviseChild(file, args);
else {
  // Loaded here: the parent has no use for it.
  const { runCommand } = await import('./command.ts');
  await runCommand(process.argv);
}
