/**
 * A WebAssembly program of the target `wasm32-wasip1`, run once: its arguments, bytes on its standard input, files, and what
 * it writes.
 *
 * It has a clock, random numbers, its three standard streams and one directory of files in memory. It has no threads, no
 * child processes and no network: every other call of the system is answered with "not supported".
 */
import { VirtualDirectory, VirtualFile, VirtualFiles } from "./virtual-files";

/** How a program ended. */
export interface Ended {
  code: number;
  output: Uint8Array<ArrayBuffer>;
  messages: string;
}

/** All that a program gets besides its standard input. */
export interface ProgramSettings {
  /** Arguments behind the name of the program. */
  arguments?: readonly string[];
  files?: VirtualFiles;
  /** Called with each piece of standard error while the program runs. */
  onMessage?: (text: string) => void;
}

/** Numbers of errors, as WASI defines them. */
const ok = 0;
const badDescriptor = 8;
const exists = 20;
const invalid = 28;
const isDirectory = 31;
const noEntry = 44;
const noDirectory = 54;
const notEmpty = 55;
const notSupported = 58;
const noPermission = 63;

/** Types of files, as WASI defines them. */
const characterDevice = 2;
const directoryType = 3;
const regularFile = 4;

/** Flags of opening a file. */
const createFlag = 1;
const directoryFlag = 2;
const exclusiveFlag = 4;
const truncateFlag = 8;
/** The flag that every write is at the end. */
const appendFlag = 1;
/** The right to write. */
const writeRight = 1n << 6n;

/** Descriptor of the directory. */
const rootDescriptor = 3;

/** A program, or what it writes, needs more memory than there is. */
export class MemoryExhausted extends Error {}

/** Ends the program from inside a call. */
class ProgramEnd {
  constructor(readonly code: number) {}
}

/** Ends a call with the number of an error. */
class CallError {
  constructor(readonly number: number) {}
}

/** Bytes of a stream in the order in which they are written. */
class Written {
  private readonly parts: Uint8Array[] = [];
  private length = 0;

  push(bytes: Uint8Array): void {
    this.parts.push(bytes);
    this.length += bytes.length;
  }

  join(): Uint8Array<ArrayBuffer> {
    const whole = new Uint8Array(this.length);
    let at = 0;
    for (const part of this.parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}

interface OpenNode {
  node: VirtualFile | VirtualDirectory;
  position: number;
  appends: boolean;
}

type SystemCall = (...values: never[]) => number | void;

/** The system of one program. */
class ProgramSystem {
  memory!: WebAssembly.Memory;
  readonly output = new Written();
  readonly messages = new Written();
  private readonly decoder = new TextDecoder();
  private readonly open = new Map<number, OpenNode>();
  private readonly files: VirtualFiles;
  private read = 0;
  private readonly arguments: Uint8Array[];

  constructor(
    private readonly input: Uint8Array,
    private readonly settings: ProgramSettings,
  ) {
    this.files = settings.files ?? new VirtualFiles();
    const given = settings.arguments ?? [];
    this.arguments = (given.length > 0 ? ["lookalike", ...given] : []).map((text) => new TextEncoder().encode(`${text}\0`));
    if (settings.files) this.open.set(rootDescriptor, { node: this.files.root, position: 0, appends: false });
  }

  private view = () => new DataView(this.memory.buffer);
  private bytes = (start: number, length: number) => new Uint8Array(this.memory.buffer, start, length);
  private text = (start: number, length: number) => new TextDecoder().decode(this.bytes(start, length).slice());

  /** Calls `use` with every buffer of a list until it takes less than the whole one, and stores the bytes that were taken. */
  private eachBuffer(list: number, count: number, result: number, use: (buffer: Uint8Array) => number): void {
    let total = 0;
    for (let at = list; at < list + 8 * count; at += 8) {
      const buffer = this.bytes(this.view().getUint32(at, true), this.view().getUint32(at + 4, true));
      const used = use(buffer);
      total += used;
      if (used < buffer.length) break;
    }
    this.view().setUint32(result, total, true);
  }

  private find(descriptor: number): OpenNode {
    const found = this.open.get(descriptor);
    if (!found) throw new CallError(badDescriptor);
    return found;
  }

  private findFile(descriptor: number): OpenNode & { node: VirtualFile } {
    const found = this.find(descriptor);
    if (found.node instanceof VirtualDirectory) throw new CallError(isDirectory);
    return found as OpenNode & { node: VirtualFile };
  }

  private findPath(descriptor: number, start: number, length: number) {
    const { node } = this.find(descriptor);
    const found = node instanceof VirtualDirectory ? this.files.find(node, this.text(start, length)) : null;
    if (!found) throw new CallError(noDirectory);
    return found;
  }

  private findExisting(descriptor: number, start: number, length: number) {
    const found = this.findPath(descriptor, start, length);
    if (!found.node) throw new CallError(noEntry);
    return { ...found, node: found.node };
  }

  private writeFile(open: OpenNode & { node: VirtualFile }, buffer: Uint8Array, offset: number): number {
    const content = open.node.writable;
    if (!content) throw new CallError(noPermission);
    content.write(buffer, offset);
    open.node.modified = Date.now();
    return buffer.length;
  }

  private storeStatus(at: number, node: VirtualFile | VirtualDirectory): void {
    this.bytes(at, 64).fill(0);
    const view = this.view();
    const isFile = node instanceof VirtualFile;
    view.setBigUint64(at + 8, BigInt(node.number), true);
    view.setUint8(at + 16, isFile ? regularFile : directoryType);
    view.setBigUint64(at + 24, 1n, true);
    view.setBigUint64(at + 32, BigInt(isFile ? node.content.size : 0), true);
    for (const place of [40, 48, 56]) view.setBigUint64(at + place, BigInt(node.modified) * 1_000_000n, true);
  }

  private storeTexts(texts: readonly Uint8Array[], places: number, start: number): void {
    let at = start;
    texts.forEach((text, index) => {
      this.view().setUint32(places + 4 * index, at, true);
      this.bytes(at, text.length).set(text);
      at += text.length;
    });
  }

  private storeSizes(texts: readonly Uint8Array[], count: number, bytes: number): void {
    this.view().setUint32(count, texts.length, true);
    this.view().setUint32(bytes, texts.reduce((total, text) => total + text.length, 0), true);
  }

  /** The calls of the system. One that ends without a number succeeds. */
  readonly calls: Record<string, SystemCall> = {
    args_get: (places: number, start: number) => this.storeTexts(this.arguments, places, start),
    args_sizes_get: (count: number, bytes: number) => this.storeSizes(this.arguments, count, bytes),
    environ_get: () => ok,
    environ_sizes_get: (count: number, bytes: number) => this.storeSizes([], count, bytes),
    clock_res_get: (_clock: number, result: number) => this.view().setBigUint64(result, 1_000_000n, true),
    clock_time_get: (clock: number, _precision: bigint, result: number) => {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      this.view().setBigUint64(result, BigInt(Math.round(milliseconds * 1e6)), true);
    },
    random_get: (start: number, length: number) => {
      for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(this.bytes(start + at, Math.min(65_536, length - at)));
    },
    proc_exit: (code: number) => {
      throw new ProgramEnd(code);
    },
    sched_yield: () => ok,
    // A program with one thread sleeps for nothing that could change meanwhile: each wait has ended at once.
    poll_oneoff: (subscriptions: number, events: number, count: number, result: number) => {
      this.bytes(events, 32 * count).fill(0);
      for (let at = 0; at < count; at += 1) this.view().setBigUint64(events + 32 * at, this.view().getBigUint64(subscriptions + 48 * at, true), true);
      this.view().setUint32(result, count, true);
    },
    fd_advise: () => ok,
    fd_datasync: () => ok,
    fd_sync: () => ok,
    fd_fdstat_set_flags: () => ok,
    fd_filestat_set_times: () => ok,
    fd_close: (descriptor: number) => {
      this.open.delete(descriptor);
    },
    fd_prestat_get: (descriptor: number, result: number) => {
      if (descriptor !== rootDescriptor || !this.open.has(descriptor)) return badDescriptor;
      this.view().setUint32(result, 0, true);
      this.view().setUint32(result + 4, 1, true);
      return ok;
    },
    fd_prestat_dir_name: (_descriptor: number, start: number) => this.bytes(start, 1).set([47]),
    fd_fdstat_get: (descriptor: number, result: number) => {
      this.bytes(result, 24).fill(0);
      const type = descriptor < rootDescriptor ? characterDevice : this.find(descriptor).node instanceof VirtualFile ? regularFile : directoryType;
      this.view().setUint8(result, type);
      // All rights. A character device without the right to seek would be taken for a terminal.
      for (const place of [8, 16]) this.view().setBigUint64(result + place, (1n << 30n) - 1n, true);
    },
    fd_filestat_get: (descriptor: number, result: number) => {
      if (descriptor < rootDescriptor) {
        this.bytes(result, 64).fill(0);
        this.view().setUint8(result + 16, characterDevice);
        return;
      }
      this.storeStatus(result, this.find(descriptor).node);
    },
    fd_filestat_set_size: (descriptor: number, size: bigint) => {
      const content = this.findFile(descriptor).node.writable;
      if (!content) return noPermission;
      content.resize(Number(size));
      return ok;
    },
    fd_read: (descriptor: number, list: number, count: number, result: number) => {
      if (descriptor === 0) {
        return this.eachBuffer(list, count, result, (buffer) => {
          const part = this.input.subarray(this.read, this.read + buffer.length);
          buffer.set(part);
          this.read += part.length;
          return part.length;
        });
      }
      const open = this.findFile(descriptor);
      return this.eachBuffer(list, count, result, (buffer) => {
        const read = open.node.content.read(buffer, open.position);
        open.position += read;
        return read;
      });
    },
    fd_pread: (descriptor: number, list: number, count: number, offset: bigint, result: number) => {
      const { node } = this.findFile(descriptor);
      let at = Number(offset);
      this.eachBuffer(list, count, result, (buffer) => {
        const read = node.content.read(buffer, at);
        at += read;
        return read;
      });
    },
    fd_write: (descriptor: number, list: number, count: number, result: number) => {
      if (descriptor === 1 || descriptor === 2) {
        return this.eachBuffer(list, count, result, (buffer) => {
          const bytes = buffer.slice();
          (descriptor === 1 ? this.output : this.messages).push(bytes);
          if (descriptor === 2) this.settings.onMessage?.(this.decoder.decode(bytes, { stream: true }));
          return buffer.length;
        });
      }
      const open = this.findFile(descriptor);
      return this.eachBuffer(list, count, result, (buffer) => {
        if (open.appends) open.position = open.node.content.size;
        const written = this.writeFile(open, buffer, open.position);
        open.position += written;
        return written;
      });
    },
    fd_pwrite: (descriptor: number, list: number, count: number, offset: bigint, result: number) => {
      const open = this.findFile(descriptor);
      let at = Number(offset);
      this.eachBuffer(list, count, result, (buffer) => {
        const written = this.writeFile(open, buffer, at);
        at += written;
        return written;
      });
    },
    fd_seek: (descriptor: number, offset: bigint, whence: number, result: number) => {
      const open = this.findFile(descriptor);
      const from = [0, open.position, open.node.content.size][whence];
      const position = (from ?? Number.NaN) + Number(offset);
      if (!(position >= 0)) return invalid;
      open.position = position;
      this.view().setBigUint64(result, BigInt(position), true);
      return ok;
    },
    fd_tell: (descriptor: number, result: number) => this.view().setBigUint64(result, BigInt(this.findFile(descriptor).position), true),
    fd_readdir: (descriptor: number, start: number, length: number, cookie: bigint, result: number) => {
      const { node } = this.find(descriptor);
      if (!(node instanceof VirtualDirectory)) return noDirectory;
      const entries = [...node.entries].slice(Number(cookie));
      const listed = new Written();
      entries.forEach(([name, entry], index) => {
        const bytes = new TextEncoder().encode(name);
        const head = new DataView(new ArrayBuffer(24));
        head.setBigUint64(0, cookie + BigInt(index) + 1n, true);
        head.setBigUint64(8, BigInt(entry.number), true);
        head.setUint32(16, bytes.length, true);
        head.setUint8(20, entry instanceof VirtualFile ? regularFile : directoryType);
        listed.push(new Uint8Array(head.buffer));
        listed.push(bytes);
      });
      const all = listed.join().subarray(0, length);
      this.bytes(start, all.length).set(all);
      this.view().setUint32(result, all.length, true);
      return ok;
    },
    path_open: (directory: number, _follow: number, start: number, length: number, how: number, rights: bigint, _inherited: bigint, flags: number, result: number) => {
      const { parent, name, node: known } = this.findPath(directory, start, length);
      let node = known;
      if (node && how & createFlag && how & exclusiveFlag) return exists;
      if (!node) {
        if (!(how & createFlag)) return noEntry;
        node = this.files.makeFile();
        parent.entries.set(name, node);
      }
      if (node instanceof VirtualFile && how & directoryFlag) return noDirectory;
      if (node instanceof VirtualFile && (rights & writeRight) !== 0n && !node.writable) return noPermission;
      if (node instanceof VirtualFile && how & truncateFlag) node.writable?.resize(0);
      let descriptor = rootDescriptor + 1;
      while (this.open.has(descriptor)) descriptor += 1;
      this.open.set(descriptor, { node, position: 0, appends: (flags & appendFlag) !== 0 });
      this.view().setUint32(result, descriptor, true);
      return ok;
    },
    path_filestat_get: (directory: number, _follow: number, start: number, length: number, result: number) =>
      this.storeStatus(result, this.findExisting(directory, start, length).node),
    path_filestat_set_times: () => ok,
    path_create_directory: (directory: number, start: number, length: number) => {
      const { parent, name, node } = this.findPath(directory, start, length);
      if (node) return exists;
      parent.entries.set(name, this.files.makeDirectory());
      return ok;
    },
    path_readlink: () => invalid,
    path_link: (from: number, _follow: number, start: number, length: number, to: number, newStart: number, newLength: number) => {
      const { node } = this.findExisting(from, start, length);
      const target = this.findPath(to, newStart, newLength);
      if (target.node) return exists;
      target.parent.entries.set(target.name, node);
      return ok;
    },
    path_rename: (from: number, start: number, length: number, to: number, newStart: number, newLength: number) => {
      const { parent, name, node } = this.findExisting(from, start, length);
      const target = this.findPath(to, newStart, newLength);
      parent.entries.delete(name);
      target.parent.entries.set(target.name, node);
    },
    path_unlink_file: (directory: number, start: number, length: number) => {
      const { parent, name, node } = this.findExisting(directory, start, length);
      if (node instanceof VirtualDirectory) return isDirectory;
      parent.entries.delete(name);
      return ok;
    },
    path_remove_directory: (directory: number, start: number, length: number) => {
      const { parent, name, node } = this.findExisting(directory, start, length);
      if (!(node instanceof VirtualDirectory)) return noDirectory;
      if (node.entries.size > 0) return notEmpty;
      parent.entries.delete(name);
      return ok;
    },
  };
}

/** Returns a call of the system that answers with the number of an error. */
const answerErrors =
  (call: SystemCall): ((...values: never[]) => number) =>
  (...values) => {
    try {
      // Whole numbers arrive with a sign, and every one of them is a pointer, a length or a number without one.
      const unsigned = values.map((value: unknown) => (typeof value === "number" ? value >>> 0 : value));
      return call(...(unsigned as never[])) ?? ok;
    } catch (cause) {
      if (cause instanceof CallError) return cause.number;
      throw cause;
    }
  };

/** Parts of the messages of a program, or of the browser, when memory cannot be allocated. */
const lackOfMemory = /memory allocation of \d+ bytes failed|out of memory|buffer allocation failed/i;

/** Returns why a program did not end by itself. One that has no memory left says so, and then traps. */
function explainTrap(cause: unknown, messages: string): unknown {
  const text = `${messages.trim()} (${String(cause)})`;
  if (lackOfMemory.test(text)) return new MemoryExhausted(text);
  return messages.trim() === "" ? cause : new Error(text);
}

/** Runs a program to its end. A trap is an error, and lack of memory is {@link MemoryExhausted}. */
export async function runProgram(module: WebAssembly.Module, input: Uint8Array, settings: ProgramSettings = {}): Promise<Ended> {
  const system = new ProgramSystem(input, settings);
  const wanted = WebAssembly.Module.imports(module).map(({ name }) => [name, answerErrors(system.calls[name] ?? (() => notSupported))] as const);
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: Object.fromEntries(wanted) as WebAssembly.ModuleImports });
  system.memory = instance.exports["memory"] as WebAssembly.Memory;
  const end = (code: number): Ended => ({ code, output: system.output.join(), messages: new TextDecoder().decode(system.messages.join()) });
  try {
    (instance.exports["_start"] as () => void)();
    return end(0);
  } catch (cause) {
    if (cause instanceof ProgramEnd) return end(cause.code);
    throw explainTrap(cause, new TextDecoder().decode(system.messages.join()));
  }
}
