import { createProgram, run } from './client/program.ts';
import { addConfigCommand } from './cluster/config-command.ts';
import { addServeCommand } from './cluster/serve-command.ts';

/** Every command in this process. */
export async function runCommand(argv: readonly string[]): Promise<void> {
  const program = createProgram();
  addServeCommand(program);
  addConfigCommand(program);
  await run(program, argv);
}
