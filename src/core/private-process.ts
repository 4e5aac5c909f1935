/**
 * Imported first by whatever a process begins with. What it writes is its user's alone, also in a folder that others can
 * enter; and SIGUSR1, which would have Node open an inspector to anybody on the machine, does nothing.
 */
process.umask(0o077);
process.on('SIGUSR1', () => {});
