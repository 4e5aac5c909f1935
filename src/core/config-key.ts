/** One key as JSON Schema. By hand: TypeBox would cost every command of the program 300 ms at its start. */
export interface Key<T> {
  type: 'integer' | 'string' | 'boolean' | 'object';
  default: T;
  description: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  enum?: readonly T[];
  required?: readonly string[];
  properties?: Readonly<Record<string, unknown>>;
  additionalProperties?: boolean;
  if?: object;
  then?: object;
  else?: object;
}

export const integer = (
  value: number,
  minimum: number,
  maximum: number,
  description: string,
): Key<number> => ({
  type: 'integer',
  default: value,
  minimum,
  maximum,
  description,
});
export const text = (value: string, description: string, limits: Partial<Key<string>> = {}): Key<string> => ({
  type: 'string',
  default: value,
  description,
  maxLength: 4096,
  ...limits,
});
export const boolean = (value: boolean, description: string): Key<boolean> => ({
  type: 'boolean',
  default: value,
  description,
});
