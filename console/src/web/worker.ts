/** The worker of the page. It unpacks the module, and runs it for every call, so that the page stays alive meanwhile. */
import { unpackLzma } from "./lzma";
import { MemoryExhausted, runProgram, type Ended } from "./wasi";
import { BlobContent, BytesContent, VirtualFiles } from "./virtual-files";

/** The first message to the first worker: the module as the page has it, in the format of `lzma.ts` and in base 64. */
export interface PackedMessage {
  packed: string;
}

/** The answer to it, and the first message to every other worker: the compiled module. */
export interface ModuleMessage {
  module: WebAssembly.Module;
}

/** Why there is no answer. */
export interface FaultMessage {
  fault: string;
  /** `true` if the memory of the module was exhausted. */
  lacksMemory: boolean;
}

/** A call of the page. */
export interface CallMessage {
  number: number;
  input: Uint8Array<ArrayBuffer>;
}

/** A file with its path. */
export interface GivenFile {
  path: string;
  content: Blob;
}

/** A run of the command over files. */
export interface RunMessage extends CallMessage {
  arguments: readonly string[];
  files: readonly GivenFile[];
}

/** A file that a run wrote. */
export interface WrittenFile {
  name: string;
  content: Blob;
}

/** A piece of what a run writes to standard error. */
export interface ProgressMessage {
  number: number;
  text: string;
}

/** The answer to a call or a run: how the program ended, or why it did not. */
export type AnswerMessage = { number: number } & ((Ended & { files: WrittenFile[] }) | FaultMessage);

let program: WebAssembly.Module | null = null;

/** Largest file that is read at once. Larger ones are read in parts. */
const wholeFileBytes = 1 << 20;

/** Makes the files of a run available to a program, which cannot wait for them. */
async function openFiles(given: readonly GivenFile[]): Promise<VirtualFiles> {
  const files = new VirtualFiles();
  for (const { path, content } of given) {
    files.add(path, content.size > wholeFileBytes ? new BlobContent(content) : new BytesContent(new Uint8Array(await content.arrayBuffer())));
  }
  return files;
}

const describeFault = (cause: unknown): FaultMessage => ({
  fault: cause instanceof Error ? cause.message : String(cause),
  lacksMemory: cause instanceof MemoryExhausted,
});

/** Returns the bytes of a text in base 64. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/** Compiles the module of the page. The browser shares its code with every worker that gets it. */
async function compileModule(packed: string): Promise<ModuleMessage> {
  program = await WebAssembly.compile(unpackLzma(decodeBase64(packed)));
  return { module: program };
}

async function answer(message: CallMessage | RunMessage): Promise<AnswerMessage> {
  const { number, input } = message;
  try {
    if (!("arguments" in message)) return { number, ...(await runProgram(program!, input)), files: [] };
    const files = await openFiles(message.files);
    const onMessage = (text: string) => postMessage({ number, text } satisfies ProgressMessage);
    const ended = await runProgram(program!, input, { arguments: message.arguments, files, onMessage });
    const written = files.listWritten().map(([name, content]) => ({ name, content: content.toBlob() }));
    return { number, ...ended, files: written };
  } catch (cause) {
    return { number, ...describeFault(cause) };
  }
}

addEventListener("message", (event: MessageEvent<PackedMessage | ModuleMessage | CallMessage | RunMessage>) => {
  const message = event.data;
  if ("packed" in message) void compileModule(message.packed).catch(describeFault).then((told) => postMessage(told));
  else if ("module" in message) program = message.module;
  else void answer(message).then((told) => postMessage(told));
});
