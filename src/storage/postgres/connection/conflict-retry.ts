import { unavailable } from '../../../core/errors.ts';
import { isConflict } from './database-failure.ts';

const attemptsMax = 5;

/** Repeats `act` on conflicts. @throws what `act` throws, ApiError unavailable */
export async function retryConflicts<A>(act: () => Promise<A>): Promise<A> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await act();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempts === attemptsMax) throw unavailable('The database has too many conflicts.');
    }
  }
}
