/**
 * A WebAssembly program of the target `wasm32-wasip1`, run once: bytes on its standard input, and what it writes.
 *
 * It has a clock, random numbers and its three standard streams. It has no files, no arguments, no variables and no
 * network: every other call of the system is answered with "not supported".
 */

/** How a program ended. */
export interface Ended {
  code: number;
  output: Uint8Array<ArrayBuffer>;
  messages: string;
}

/** Numbers of errors, as WASI defines them. */
const ok = 0;
const badDescriptor = 8;
const notSupported = 58;

/** Ends the program from inside a call. */
class ProgramEnd {
  constructor(readonly code: number) {}
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

/** Runs a program to its end. A trap, for example for lack of memory, is an error. */
export async function runProgram(module: WebAssembly.Module, input: Uint8Array): Promise<Ended> {
  const output = new Written();
  const messages = new Written();
  let memory: WebAssembly.Memory;
  let read = 0;
  const view = () => new DataView(memory.buffer);
  /** Calls `use` with every buffer of a list until it takes less than the whole one, and stores the bytes that were taken. */
  const eachBuffer = (list: number, count: number, result: number, use: (buffer: Uint8Array) => number): number => {
    let total = 0;
    for (let at = list; at < list + 8 * count; at += 8) {
      const buffer = new Uint8Array(memory.buffer, view().getUint32(at, true), view().getUint32(at + 4, true));
      const used = use(buffer);
      total += used;
      if (used < buffer.length) break;
    }
    view().setUint32(result, total, true);
    return ok;
  };
  const system: Record<string, (...values: never[]) => number> = {
    fd_read: (descriptor: number, list: number, count: number, result: number) =>
      descriptor !== 0
        ? badDescriptor
        : eachBuffer(list, count, result, (buffer) => {
            const part = input.subarray(read, read + buffer.length);
            buffer.set(part);
            read += part.length;
            return part.length;
          }),
    fd_write: (descriptor: number, list: number, count: number, result: number) =>
      descriptor !== 1 && descriptor !== 2
        ? badDescriptor
        : eachBuffer(list, count, result, (buffer) => {
            (descriptor === 1 ? output : messages).push(buffer.slice());
            return buffer.length;
          }),
    fd_close: () => ok,
    // No directory is open.
    fd_prestat_get: () => badDescriptor,
    clock_time_get: (clock: number, _precision: bigint, result: number) => {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(result, BigInt(Math.round(milliseconds * 1e6)), true);
      return ok;
    },
    random_get: (start: number, length: number) => {
      for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(new Uint8Array(memory.buffer, start + at, Math.min(65_536, length - at)));
      return ok;
    },
    proc_exit: (code: number) => {
      throw new ProgramEnd(code);
    },
    sched_yield: () => ok,
  };
  // Neither arguments nor variables: no texts, in no bytes.
  for (const name of ["args", "environ"]) {
    system[`${name}_get`] = () => ok;
    system[`${name}_sizes_get`] = (count: number, bytes: number) => {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return ok;
    };
  }
  const wanted = WebAssembly.Module.imports(module).map(({ name }) => [name, system[name] ?? (() => notSupported)] as const);
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: Object.fromEntries(wanted) as WebAssembly.ModuleImports });
  memory = instance.exports["memory"] as WebAssembly.Memory;
  const end = (code: number): Ended => ({ code, output: output.join(), messages: new TextDecoder().decode(messages.join()) });
  try {
    (instance.exports["_start"] as () => void)();
    return end(0);
  } catch (cause) {
    if (cause instanceof ProgramEnd) return end(cause.code);
    throw cause;
  }
}
