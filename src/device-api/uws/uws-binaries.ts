/** A binary of uWebSockets.js: its requirements, and the digest its file must have to be loaded. */
export interface UwsBinary {
  /** Node's platform and architecture. */
  platform: string;
  /** Major version of Node. */
  node: number;
  /** Oldest glibc that has all symbols it needs. */
  glibc: string;
  /** Package, and the file in it. */
  file: string;
  sha256: string;
}

/**
 * Known binaries, newest library first: v20.69.0, then v20.51.0. `docs/start/install.md` says how to compare a digest
 * with the vendor's own, and how to add a vendor's binary for another platform.
 */
export const uwsBinaries: readonly UwsBinary[] = [
  {
    platform: 'linux-x64',
    node: 26,
    glibc: '2.38',
    file: '@uwsjs/linux-x64-26/uws.node',
    sha256: '604375741bf77780b34e7e299af9274cb1f56d73732201d19e3d8d8448176795',
  },
  {
    platform: 'linux-x64',
    node: 24,
    glibc: '2.38',
    file: '@uwsjs/linux-x64-24/uws.node',
    sha256: '177efdc682425d754474bd30f9586c487fa6694f790f3406a23885d0e61c07a0',
  },
  {
    platform: 'linux-x64',
    node: 22,
    glibc: '2.38',
    file: '@uwsjs/linux-x64-22/uws.node',
    sha256: '34d235864db874fbf3aeafd48b63f6fb80f61fb584a86f1e5f7b0291dbd7a3d4',
  },
  {
    platform: 'linux-x64',
    node: 23,
    glibc: '2.27',
    file: '@uwsjs/linux-x64-23/uws.node',
    sha256: 'ed86f2297e70febcc89138818c2ca503dad29783bc4bba2aa7cc6d9beba70739',
  },
  {
    platform: 'linux-x64',
    node: 22,
    glibc: '2.27',
    file: '@uwsjs/linux-x64-22-glibc-2.27/uws.node',
    sha256: 'f687e7c3666b5cca9d355184bbf07bb0550f5ba0d3ffd453248ccfec552dde6c',
  },
  {
    platform: 'linux-x64',
    node: 20,
    glibc: '2.27',
    file: '@uwsjs/linux-x64-20/uws.node',
    sha256: '4d482084b665c225892917ee0e9b9572d89eaa6f3dc200ff5e536293d3456c89',
  },
];
