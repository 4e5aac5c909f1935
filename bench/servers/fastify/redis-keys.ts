export const logKey = 'datapoints';
export const deviceKey = (device: string): string => `device:${device}`;
export const mailboxKey = (device: string): string => `mailbox:${device}`;
