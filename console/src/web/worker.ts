/**
 * The worker of the page. It compiles the module once and runs it for every call, so that the page stays alive meanwhile.
 */
import { runProgram, type Ended } from "./wasi";

/** The first message: the module, compressed with gzip. */
export interface ModuleMessage {
  module: Uint8Array<ArrayBuffer>;
}

/** Every further message. */
export interface CallMessage {
  number: number;
  input: Uint8Array<ArrayBuffer>;
}

/** The answer to a call: how the program ended, or why it did not. */
export type AnswerMessage = { number: number } & (Ended | { fault: string });

let compiled: Promise<WebAssembly.Module> | null = null;

/** Returns the bytes of a text that is compressed with gzip. */
async function decompress(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function answer({ number, input }: CallMessage): Promise<AnswerMessage> {
  try {
    return { number, ...(await runProgram(await compiled!, input)) };
  } catch (cause) {
    return { number, fault: String(cause) };
  }
}

addEventListener("message", (event: MessageEvent<ModuleMessage | CallMessage>) => {
  const message = event.data;
  if ("module" in message) compiled = decompress(message.module).then((bytes) => WebAssembly.compile(bytes));
  else void answer(message).then((told) => postMessage(told));
});
