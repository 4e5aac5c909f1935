import { Device } from './device.mjs';

const device = new Device({
  url: 'https://127.0.0.1:8443',
  fleet: 'ORCHARD1',
  id: 'PUMP000001',
  secret: 'FOS-…',
  ca: 'data/tls/cert.pem',
  queue: 'pump.queue',
});
device.onMail((mail) => console.log(mail.name, mail.payload)); // returning acknowledges, an exception rejects
setInterval(() => device.datapoint('flow', { litres: 12.5 }), 10_000);
