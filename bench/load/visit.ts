import { DeviceConnection, type DeviceConnectionOptions } from './device-connection.ts';

export interface VisitOptions extends DeviceConnectionOptions {
  request: string;
}

export interface Visit {
  /** Absent where the connection failed. */
  answer?: string;
  isResumed: boolean;
  /** Session for the next visit: the latest that came, else the one offered. */
  session: Buffer | undefined;
}

/** Connects, asks one thing, and leaves once it is answered. */
export async function visit({ request, ...options }: VisitOptions): Promise<Visit> {
  const connection = DeviceConnection.open(options);
  try {
    const answer = await connection.ask(request);
    return { answer, isResumed: connection.isResumed, session: connection.session };
  } catch {
    return { isResumed: false, session: connection.session };
  } finally {
    connection.close();
  }
}
