import { programsFolder } from '../postgres/postgres-program.ts';

/** Once for all files, so that a copy of the programs, where one is needed, is made once and removed at the end. */
export default function setup(): void {
  programsFolder();
}
