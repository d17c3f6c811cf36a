/** The files of a program in the page: what the user gave it, and what it writes. They exist in memory alone. */

/** Reads files without waiting. Workers alone have it, and the types of pages do not. */
declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

/** Bytes of a file at any offset. */
export interface FileContent {
  readonly size: number;
  /** Copies bytes from `offset` on into `target`, and returns their number: 0 at the end. */
  read(target: Uint8Array, offset: number): number;
}

/** Bytes that are in memory. */
export class BytesContent implements FileContent {
  readonly size: number;
  constructor(private readonly bytes: Uint8Array) {
    this.size = bytes.length;
  }

  read(target: Uint8Array, offset: number): number {
    const part = this.bytes.subarray(offset, offset + target.length);
    target.set(part);
    return part.length;
  }
}

/** Bytes of a window of a file that is read from disk at once. */
const windowBytes = 1 << 22;
/** Largest number of windows of a file that are kept: rows are read again in any order. */
const keptWindows = 64;

/** A file of the user, of which parts are in memory. It can be read inside a worker alone. */
export class BlobContent implements FileContent {
  readonly size: number;
  private readonly windows = new Map<number, Uint8Array>();
  private readonly reader = new FileReaderSync();

  constructor(private readonly blob: Blob) {
    this.size = blob.size;
  }

  read(target: Uint8Array, offset: number): number {
    if (offset >= this.size) return 0;
    const number = Math.floor(offset / windowBytes);
    const start = offset - number * windowBytes;
    const part = this.loadWindow(number).subarray(start, start + target.length);
    target.set(part);
    return part.length;
  }

  private loadWindow(number: number): Uint8Array {
    const known = this.windows.get(number);
    // A map lists its entries in the order in which they were set, so that the first one was used the longest time ago.
    this.windows.delete(number);
    if (!known && this.windows.size >= keptWindows) this.windows.delete(this.windows.keys().next().value!);
    const start = number * windowBytes;
    const window = known ?? new Uint8Array(this.reader.readAsArrayBuffer(this.blob.slice(start, start + windowBytes)));
    this.windows.set(number, window);
    return window;
  }
}

/** Bytes of a part of a file that a program writes. */
const partBytes = 1 << 20;

/** A file that a program writes, in parts of one size, so that it grows without being copied. */
export class WrittenContent implements FileContent {
  size = 0;
  private readonly parts: Uint8Array<ArrayBuffer>[] = [];

  read(target: Uint8Array, offset: number): number {
    const length = Math.max(0, Math.min(target.length, this.size - offset));
    this.eachPart(offset, length, (part, at) => target.set(part, at));
    return length;
  }

  write(source: Uint8Array, offset: number): void {
    if (offset > this.size) this.resize(offset);
    this.reserve(offset + source.length);
    this.eachPart(offset, source.length, (part, at) => part.set(source.subarray(at, at + part.length)));
    this.size = Math.max(this.size, offset + source.length);
  }

  /** Makes it longer by zeros, or shorter. */
  resize(size: number): void {
    this.reserve(size);
    if (size > this.size) this.eachPart(this.size, size - this.size, (part) => part.fill(0));
    this.size = size;
    this.parts.length = Math.ceil(size / partBytes);
  }

  toBlob(): Blob {
    const last = this.size % partBytes;
    return new Blob(this.parts.map((part, at) => (last > 0 && at === this.parts.length - 1 ? part.subarray(0, last) : part)));
  }

  private reserve(size: number): void {
    while (this.parts.length * partBytes < size) this.parts.push(new Uint8Array(partBytes));
  }

  /** Calls `use` with the pieces of a range, and where in the range each begins. */
  private eachPart(offset: number, length: number, use: (part: Uint8Array, at: number) => void): void {
    for (let at = 0; at < length; ) {
      const [number, start] = [Math.floor((offset + at) / partBytes), (offset + at) % partBytes];
      const count = Math.min(length - at, partBytes - start);
      use(this.parts[number]!.subarray(start, start + count), at);
      at += count;
    }
  }
}

/** A file. It lives as long as a name or a program that has it open. */
export class VirtualFile {
  modified = Date.now();
  constructor(
    public content: FileContent,
    readonly number: number,
  ) {}

  /** Returns the content, to be written; null for a file of the user. */
  get writable(): WrittenContent | null {
    return this.content instanceof WrittenContent ? this.content : null;
  }
}

export class VirtualDirectory {
  readonly entries = new Map<string, VirtualNode>();
  readonly modified = Date.now();
  constructor(readonly number: number) {}
}

export type VirtualNode = VirtualFile | VirtualDirectory;

/** A name inside a directory; the node of an existing one. */
export interface FoundName {
  parent: VirtualDirectory;
  name: string;
  node: VirtualNode | undefined;
}

/** All files of a program, below one directory. */
export class VirtualFiles {
  private numbers = 1;
  readonly root = new VirtualDirectory(this.numbers);

  makeFile(content: FileContent = new WrittenContent()): VirtualFile {
    return new VirtualFile(content, (this.numbers += 1));
  }

  makeDirectory(): VirtualDirectory {
    return new VirtualDirectory((this.numbers += 1));
  }

  /** Adds a file under a path, and the directories in it. */
  add(path: string, content: FileContent): void {
    const names = path.split("/").filter((name) => name !== "" && name !== "." && name !== "..");
    const last = names.pop();
    let directory = this.root;
    for (const name of names) {
      const known = directory.entries.get(name);
      const next = known instanceof VirtualDirectory ? known : this.makeDirectory();
      directory.entries.set(name, next);
      directory = next;
    }
    if (last !== undefined) directory.entries.set(last, this.makeFile(content));
  }

  /** Returns the place of a path below a directory; null if a part of it is no directory. */
  find(from: VirtualDirectory, path: string): FoundName | null {
    const names = path.split("/").filter((name) => name !== "" && name !== ".");
    let found: FoundName = { parent: from, name: "", node: from };
    for (const name of names) {
      if (!(found.node instanceof VirtualDirectory) || name === "..") return null;
      found = { parent: found.node, name, node: found.node.entries.get(name) };
    }
    return found;
  }

  /** Returns the files that were written, with their names, of the uppermost directory alone. */
  listWritten(): [string, WrittenContent][] {
    const written = [...this.root.entries].map(([name, node]) => [name, node instanceof VirtualFile ? node.writable : null] as const);
    return written.filter((entry): entry is [string, WrittenContent] => entry[1] !== null);
  }
}
