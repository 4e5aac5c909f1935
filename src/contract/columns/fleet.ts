import type { FleetDocument } from '../fleet.ts';
import type { SchemaDocument } from '../schema.ts';
import type { ListColumns } from './column.ts';

export const fleetColumns = [
  { name: 'fleet_id' },
  { name: 'name' },
  { name: 'created_at' },
  { name: 'deleting_since' },
] as const satisfies ListColumns<FleetDocument>;

export const schemaColumns = [
  { name: 'kind', label: 'Kind' },
  { name: 'name', label: 'Schema' },
  { name: 'disabled', label: 'State' },
] as const satisfies ListColumns<SchemaDocument>;
