/**
 * Imported first by every process entry. Makes written files private to the user, even in shared folders, and ignores
 * SIGUSR1, which would have Node open an inspector to anybody on the machine.
 */
process.umask(0o077);
process.on('SIGUSR1', () => {});
