import { adminApiPages } from './admin-api.ts';
import { commandPages } from './commands.ts';
import { configurationPage } from './configuration.ts';
import { errorsPage } from './errors.ts';
import { metricsPage } from './metrics.ts';

/** Every page of `docs/reference`, by its path there. */
export async function referencePages(): Promise<Map<string, string>> {
  return new Map([
    ['configuration.md', configurationPage()],
    ['errors.md', errorsPage()],
    ['metrics.md', metricsPage()],
    ...commandPages(),
    ...(await adminApiPages()),
  ]);
}
