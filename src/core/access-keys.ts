import { boolean, integer } from './config-key.ts';

/** Who may do what, and what is kept of who did what. */
export const accessKeys = {
  bootstrapToken: boolean(
    true,
    'Whether the token in DATA/admin.json may do everything; off, it may nothing.',
  ),
  apiTokensMax: integer(1_000, 1, 100_000, 'API tokens of this server, expired ones among them.'),
};
