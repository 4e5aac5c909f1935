/** Permissions of a token: look; send and settle mail; declare devices, fleets and schemas; everything. */
export const scopes = ['read', 'mail', 'provision', 'admin'] as const;
export type Scope = (typeof scopes)[number];
