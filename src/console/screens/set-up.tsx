/** What makes and changes fleets and devices, in a file of its own: most that are looked at are there already. */
export { DeleteDevice } from './device/delete-device.tsx';
export { DeviceProgram } from './device/device-program.tsx';
export { EditName, EditTags } from './device/edit-fact.tsx';
export { Rotate } from './device/rotate.tsx';
export { NoFleet } from './fleet/no-fleet.tsx';
export { ExportRecords } from './live/export-records.tsx';
export { FirstSteps } from './now/first-steps.tsx';
