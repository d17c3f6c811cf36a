/** The worker of the page. It runs the module for every call, so that the page stays alive meanwhile. */
import { runProgram, type Ended } from "./wasi";
import { BlobContent, BytesContent, VirtualFiles } from "./virtual-files";

/** The first message: the module, which the page has compiled. */
export interface ModuleMessage {
  module: WebAssembly.Module;
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
export type AnswerMessage = { number: number } & ((Ended & { files: WrittenFile[] }) | { fault: string });

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
    return { number, fault: cause instanceof Error ? cause.message : String(cause) };
  }
}

addEventListener("message", (event: MessageEvent<ModuleMessage | CallMessage | RunMessage>) => {
  const message = event.data;
  if ("module" in message) program = message.module;
  else void answer(message).then((told) => postMessage(told));
});
