import type { TokenDocument } from '../../../contract/access/token.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { callAs } from '../../server/client.ts';

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
      work={() => callAs('DELETE', `/tokens/${token_id}`)}
      onClose={onClose}
      onDone={onDone}
    >
      <Untrusted text={name} lengthMax={120} /> is refused from then on, and its open requests are cut off
      {kind === 'token' && '; the console sessions that were opened with it end too'}.
    </Confirm>
  );
}
