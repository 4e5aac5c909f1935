import type { TokenDocument } from '../../../contract/access/token.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';

export interface RevokeTokenProps {
  token: TokenDocument;
  onClose: () => void;
  onDone: () => void;
}

/** Asks before a token or a session is revoked. */
export function RevokeToken({ token, onClose, onDone }: RevokeTokenProps) {
  const { token_id, kind, name } = token;
  return (
    <Confirm
      title={kind === 'session' ? 'End the session' : 'Revoke the token'}
      work={() => call('DELETE', pathTo('/tokens/{token_id}', { token_id }))}
      onClose={onClose}
      onDone={onDone}
    >
      <Untrusted text={name} lengthMax={120} /> is refused from then on, and its open requests are cut off
      {kind === 'token' && '; the console sessions that were opened with it end too'}.
    </Confirm>
  );
}
