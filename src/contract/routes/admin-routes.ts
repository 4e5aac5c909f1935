import type { consumerRoutes } from '../consumer.ts';

/** Every route of the admin API that a token may ask for, by method and path. */
export type AdminRoutes = typeof consumerRoutes;
