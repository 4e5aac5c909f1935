import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';

/** Content types of the files a build may have; others are not served. */
const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

/** Content encodings, best first, and the ending of their files, which the build makes. */
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

type Encoding = (typeof encodings)[number][0] | 'identity';

interface ConsoleFile {
  contentType: string;
  /** The build puts a hash of the content into the names of these, so that they never change. */
  isImmutable: boolean;
  bodies: ReadonlyMap<Encoding, Buffer>;
  digest: string;
}

/** A file as one client takes it. */
export interface EncodedFile {
  body: Buffer;
  encoding: Encoding;
  /** Differs by encoding, as a strong validator must (RFC 9110, 8.8.3). */
  etag: string;
  contentType: string;
  isImmutable: boolean;
}

/**
 * The console's files, all read into memory at start: a request's path is looked up among their names, so that none
 * can lead out of the folder.
 */
export class ConsoleFiles {
  readonly #files: ReadonlyMap<string, ConsoleFile>;

  private constructor(files: ReadonlyMap<string, ConsoleFile>) {
    this.#files = files;
  }

  /** Has no files if there is no such folder: a build without the console. */
  static read(folder: string): ConsoleFiles {
    const entries = existsSync(folder)
      ? readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
      : [];
    const paths = entries.map((entry) => join(entry.parentPath, entry.name));
    const known = new Set(paths);
    const files = new Map<string, ConsoleFile>();
    for (const path of paths) {
      const contentType = contentTypes[extname(path)];
      if (contentType === undefined) continue;
      const name = relative(folder, path).split(sep).join('/');
      const plain = readFileSync(path);
      const bodies = new Map<Encoding, Buffer>();
      for (const [encoding, ending] of encodings) {
        if (known.has(path + ending)) bodies.set(encoding, readFileSync(path + ending));
      }
      bodies.set('identity', plain);
      const digest = hash('sha256', plain, 'base64url').slice(0, 22);
      files.set(name, { contentType, isImmutable: name.startsWith('assets/'), bodies, digest });
    }
    return new ConsoleFiles(files);
  }

  get isEmpty(): boolean {
    return this.#files.size === 0;
  }

  /** `name` is relative to the folder. `acceptEncoding` is the header of that name. */
  find(name: string, acceptEncoding: string): EncodedFile | undefined {
    const file = this.#files.get(name);
    if (file === undefined) return undefined;
    const accepted = acceptedEncodings(acceptEncoding);
    for (const [encoding, body] of file.bodies) {
      if (encoding !== 'identity' && !accepted.has(encoding)) continue;
      const { contentType, isImmutable, digest } = file;
      return { body, encoding, etag: `"${digest}-${encoding}"`, contentType, isImmutable };
    }
    return undefined;
  }
}

/** Names in an Accept-Encoding header, without those of weight 0. */
function acceptedEncodings(header: string): ReadonlySet<string> {
  const accepted = new Set<string>();
  for (const part of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim());
    if (!parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) accepted.add(name);
  }
  return accepted;
}
