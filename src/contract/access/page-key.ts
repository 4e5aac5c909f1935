/** Header with the half of a session's secret that the console's page keeps. No form and no page of another origin can send it. */
export const pageKeyHeader = 'X-Page-Key';
