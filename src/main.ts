#!/usr/bin/env node
import { createProgram, run } from './client/program.ts';
import { addConfigCommand } from './cluster/config-command.ts';
import { addServeCommand } from './cluster/serve-command.ts';

const program = createProgram();
addServeCommand(program);
addConfigCommand(program);
await run(program, process.argv);
