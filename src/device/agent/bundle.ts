import { fileURLToPath } from 'node:url';
import { runAgentCommand } from './command.ts';

process.exitCode = await runAgentCommand(process.argv.slice(2), fileURLToPath(import.meta.url));
