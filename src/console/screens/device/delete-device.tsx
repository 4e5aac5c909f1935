import { useState } from 'preact/hooks';
import type { ShownDeviceDocument } from '../../../contract/device.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Field } from '../../forms/field.tsx';
import { tellDone } from '../../forms/toast.tsx';
import { goFromDeleted } from '../../page/recent.ts';
import { href } from '../../page/router.ts';
import { pluralText } from '../../parts/plural-text.ts';
import { call } from '../../server/client.ts';
import { pathOfDevice } from '../../server/device-path.ts';

export interface DeleteDeviceProps {
  fleetId: string;
  device: ShownDeviceDocument;
  onClose: () => void;
}

/** Asks for the id of a device before it is deleted, and says what goes with it. */
export function DeleteDevice({ fleetId, device, onClose }: DeleteDeviceProps) {
  const { device_id, mailbox_size, delayed_mails } = device;
  const [typed, setTyped] = useState('');
  const mails = mailbox_size + delayed_mails;
  const mailbox = mails === 0 ? 'its mailbox, which is empty' : `its mailbox of ${pluralText(mails, 'mail')}`;
  return (
    <Confirm
      title="Delete the device"
      isIncomplete={typed.trim() !== device_id}
      fields={
        <Field
          label="Its id, to make sure"
          class="mono"
          placeholder={device_id}
          maxLength={10}
          spellcheck={false}
          value={typed}
          onText={setTyped}
        />
      }
      work={() => call('DELETE', pathOfDevice(fleetId, device_id))}
      onClose={onClose}
      onDone={() => {
        goFromDeleted(href([fleetId, 'devices']));
        tellDone(`${device_id} is deleted, with ${pluralText(mails, 'mail')}.`);
      }}
    >
      <code>{device_id}</code> goes for good, with {mailbox}, and is refused from then on. What it sent stays
      in the log until its retention ends.
    </Confirm>
  );
}
