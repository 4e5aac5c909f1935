/** An error of the agent: `atom: text`, as the SDKs read it, and the status on the socket. */
export class AgentError extends Error {
  readonly atom: string;
  readonly status: number;

  constructor(status: number, atom: string, text: string) {
    super(text);
    this.status = status;
    this.atom = atom;
  }
}

/** A mistake in how the agent was called. */
export function usageError(atom: string, text: string): AgentError {
  return new AgentError(400, atom, text);
}
