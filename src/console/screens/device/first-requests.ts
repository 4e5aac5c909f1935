import type { AnswerAt } from '../../../contract/routes/path.ts';
import { shellWord } from '../../parts/hidden-characters.ts';
import { madeSecret } from './made-secrets.ts';
import { secretPlaceholder } from './unknown-secret.tsx';

/** Commands for a device's first requests, with its own ids; with its secret if that was made in this page. */
export function firstRequests(
  { fleet_id, device_id }: { fleet_id: string; device_id: string },
  { url, ca_file }: AnswerAt<'GET', '/device-endpoint'>,
) {
  const secret = madeSecret(fleet_id, device_id) ?? secretPlaceholder;
  const headers = [`X-Fleet-ID: ${fleet_id}`, `X-Device-ID: ${device_id}`, `X-Device-Secret: ${secret}`];
  const authority = ca_file === null ? '' : ` --cacert ${shellWord(ca_file)}`;
  const curl = `curl -sS -i${authority} ${headers.map((one) => `-H '${one}'`).join(' ')}`;
  return {
    heartbeat: `${curl} -X POST ${url}/v1/heartbeat`,
    datapoint: `${curl} -H 'Content-Type: application/json' -d '{"celsius":21.5}' ${url}/v1/datapoint/temperature`,
    fetch: `${curl} ${url}/v1/mailbox/next`,
    acknowledge: (mailId: string) => `${curl} -X PUT ${url}/v1/mailbox/ack/${mailId}`,
  };
}
