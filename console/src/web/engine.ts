/** The engine of the page: the same crates as the command, as a WebAssembly module in a worker. */
import type { ServiceComparison, SharedPassages } from "../console/service";
import type { AnswerMessage, CallMessage, FaultMessage, GivenFile, ModuleMessage, PackedMessage, ProgressMessage, RunMessage, WrittenFile } from "./worker";

/** The script of the worker; the build puts it here. */
declare const WORKER_SCRIPT: string;

/** A recipe, and whether its words are those of jieba's dictionary. */
export interface RecipeAbility {
  name: string;
  jieba: boolean;
}

/** How two texts are compared, with the names of requests to the service. */
export interface PairOptions {
  recipe: string;
  measure?: string;
  threshold?: number;
  reworded?: boolean;
}

/** A document with given hashes and weights. */
export interface HashedDocument {
  features: { feature: string; hash: string; weight: number; votes: number[] }[];
  sums: number[];
  bits: string;
  fingerprint: string;
}

export interface HashedPair {
  a: HashedDocument;
  b: HashedDocument;
  distance: number;
  blocks: { a: string; b: string; distance: number }[];
  match: boolean;
}

export interface PermutedSets {
  documents: string[];
  permutations: { rows: { shingle: string; in: number[] }[]; minima: string[] }[];
  pairs: { a: string; b: string; equal_minima: number; estimate: number; jaccard: number }[];
}

export interface DrawnBands {
  bands: number;
  rows: number;
  /** Probabilities at Jaccard indexes 0, 0.01, … 1. */
  curve: number[];
}

/** The text of a document file. */
export interface ExtractedFile {
  text: string;
  /** Encoding in which it was read, if its bytes alone suggest it. */
  guessed_encoding: string | null;
}

/** A run of the command that ended. */
export interface EndedRun {
  /** 0 done, 1 done but rows were skipped. */
  code: number;
  /** Standard output: the summary. */
  output: string;
  /** Standard error without lines that others replaced. */
  messages: string;
  files: WrittenFile[];
}

/** A run of the command that goes on. */
export interface StartedRun {
  ended: Promise<EndedRun>;
  /** Ends it at once, and with it all that it wrote. `ended` then never resolves. */
  cancel: () => void;
}

/** Returns the last line that the next one replaces, and the text without such lines. */
export function splitMessages(text: string): { status: string; lines: string } {
  const parts = text.split("\r");
  const lastLine = (part: string) => part.slice(part.lastIndexOf("\n") + 1);
  const status = parts.slice(0, -1).map(lastLine).at(-1) ?? "";
  const lines = parts.map((part, at) => (at < parts.length - 1 ? part.slice(0, part.length - lastLine(part).length) : part)).join("");
  return { status, lines };
}

/** A call that the engine refuses. The message is a sentence of the engine. */
export class EngineRefusal extends Error {}

/** A call or a run that needs more memory than a module has. */
export class MemoryExceeded extends Error {}

/** Why the dictionary is not there. */
export class DictionaryMissing extends Error {}

const toError = ({ fault, lacksMemory }: FaultMessage): Error => (lacksMemory ? new MemoryExceeded(fault) : new Error(fault));

/** Name of the file with jieba's dictionary, which lies beside the page. */
export const dictionaryFile = "jieba-dictionary.bin";

/** Returns the bytes of a file that is compressed with gzip. */
async function decompress(file: Blob): Promise<Uint8Array<ArrayBuffer>> {
  const stream = file.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Starts a worker that has no module yet. */
function createWorker(): Worker {
  const address = URL.createObjectURL(new Blob([WORKER_SCRIPT], { type: "text/javascript" }));
  return new Worker(address);
}

/** Gives a worker the module as it lies in the page, and returns the compiled one, which the worker then has, too. */
async function compileModule(worker: Worker): Promise<WebAssembly.Module> {
  await whenParsed();
  const packed = document.getElementById("module")?.textContent ?? "";
  const told = await new Promise<ModuleMessage | FaultMessage>((resolve, reject) => {
    worker.addEventListener("message", (event: MessageEvent<ModuleMessage | FaultMessage>) => resolve(event.data), { once: true });
    worker.addEventListener("error", (event) => reject(new Error(event.message)), { once: true });
    worker.postMessage({ packed } satisfies PackedMessage);
  });
  if ("fault" in told) throw toError(told);
  return told.module;
}

/** Resolves when the whole page is parsed: the module is its last element. */
const whenParsed = (): Promise<void> =>
  document.readyState === "loading" ? new Promise((resolve) => document.addEventListener("DOMContentLoaded", () => resolve(), { once: true })) : Promise.resolve();

export class Engine {
  private readonly module: Promise<WebAssembly.Module>;
  private readonly worker: Promise<Worker>;
  private readonly waiting = new Map<number, (answer: AnswerMessage) => void>();
  private calls = 0;
  private dictionary: Promise<Uint8Array<ArrayBuffer>> | null = null;
  /** The recipes, once the module is there. */
  readonly recipes: Promise<RecipeAbility[]>;

  constructor() {
    const worker = createWorker();
    this.module = compileModule(worker);
    this.worker = this.module.then(() => this.takeAnswers(worker));
    this.recipes = this.ask<{ recipes: RecipeAbility[] }>({ call: "abilities" }).then((told) => told.recipes);
  }

  /** Gives the answers of a worker to the calls that wait for them. */
  private takeAnswers(worker: Worker): Worker {
    worker.addEventListener("message", (event: MessageEvent<AnswerMessage>) => {
      this.waiting.get(event.data.number)?.(event.data);
      this.waiting.delete(event.data.number);
    });
    return worker;
  }

  private async startWorker(): Promise<Worker> {
    const worker = createWorker();
    worker.postMessage({ module: await this.module } satisfies ModuleMessage);
    return worker;
  }

  /** Sends a call with its attachment, and returns the bytes of the answer as text. */
  async askText(call: object, attachment: Uint8Array = new Uint8Array()): Promise<string> {
    const worker = await this.worker;
    const line = new TextEncoder().encode(`${JSON.stringify(call)}\n`);
    const input = new Uint8Array(line.length + attachment.length);
    input.set(line);
    input.set(attachment, line.length);
    const number = (this.calls += 1);
    const answered = new Promise<AnswerMessage>((resolve) => this.waiting.set(number, resolve));
    worker.postMessage({ number, input } satisfies CallMessage, [input.buffer]);
    const answer = await answered;
    if ("fault" in answer) throw toError(answer);
    if (answer.code !== 0) throw new EngineRefusal(answer.messages);
    return new TextDecoder().decode(answer.output);
  }

  /**
   * Starts the command with these arguments over files, in a worker of its own, so that it can be ended at any time.
   * `onStatus` gets the last line of its progress.
   */
  startRun(given: readonly string[], files: readonly GivenFile[], recipe: string, onStatus: (status: string) => void): StartedRun {
    let worker: Worker | null = null;
    let isCancelled = false;
    const run = async (): Promise<EndedRun> => {
      const input = (await this.attach(recipe))?.slice() ?? new Uint8Array();
      worker = await this.startWorker();
      if (isCancelled) worker.terminate();
      let text = "";
      const answered = new Promise<AnswerMessage>((resolve, reject) => {
        worker!.addEventListener("error", (event) => reject(new Error(event.message)));
        worker!.addEventListener("message", (event: MessageEvent<AnswerMessage | ProgressMessage>) => {
          if (!("text" in event.data)) return resolve(event.data);
          text += event.data.text;
          onStatus(splitMessages(text).status);
        });
      });
      worker.postMessage({ number: 0, input, arguments: given, files } satisfies RunMessage, [input.buffer]);
      const answer = await answered;
      worker.terminate();
      if ("fault" in answer) throw toError(answer);
      const messages = splitMessages(answer.messages).lines.trim();
      if (answer.code > 1) throw new EngineRefusal(messages);
      return { code: answer.code, output: new TextDecoder().decode(answer.output), messages, files: answer.files };
    };
    const cancel = () => {
      isCancelled = true;
      worker?.terminate();
    };
    return { ended: run(), cancel };
  }

  private async ask<T>(call: object, attachment?: Uint8Array): Promise<T> {
    return JSON.parse(await this.askText(call, attachment)) as T;
  }

  /** Takes the dictionary from a file that the user chooses, where the page cannot fetch it. */
  async takeDictionary(file: Blob): Promise<void> {
    const bytes = await decompress(file);
    this.dictionary = Promise.resolve(bytes);
  }

  /** Fetches the dictionary once. */
  private fetchDictionary(): Promise<Uint8Array<ArrayBuffer>> {
    this.dictionary ??= fetch(dictionaryFile)
      .then(async (response) => {
        if (!response.ok) throw new Error(`${response.status}`);
        return decompress(await response.blob());
      })
      .catch((cause: unknown) => {
        this.dictionary = null;
        throw new DictionaryMissing(String(cause));
      });
    return this.dictionary;
  }

  /** Returns what belongs to a call with this recipe: the dictionary, or nothing. */
  private async attach(recipe: string): Promise<Uint8Array | undefined> {
    const known = (await this.recipes).find((ability) => ability.name === recipe);
    return known?.jieba ? this.fetchDictionary() : undefined;
  }

  compare = async (a: string, b: string, options: PairOptions): Promise<ServiceComparison> =>
    this.ask<ServiceComparison>({ call: "compare", a, b, ...options }, await this.attach(options.recipe));
  findShared = async (a: string, b: string, { recipe, reworded }: PairOptions): Promise<SharedPassages> =>
    this.ask({ call: "shared", a, b, recipe, ...(reworded && { reworded }) }, await this.attach(recipe));
  explainHashes = (a: string, b: string, distance: number): Promise<HashedPair> => this.ask({ call: "hashes", a, b, distance });
  explainPermutations = (documents: string[], permutations: string[]): Promise<PermutedSets> => this.ask({ call: "permutations", documents, permutations });
  planBands = (threshold: number): Promise<DrawnBands> => this.ask({ call: "bands", threshold });
  drawBands = (bands: number, rows: number): Promise<DrawnBands> => this.ask({ call: "bands", bands, rows });
  extractText = (name: string, bytes: Uint8Array): Promise<ExtractedFile> => this.ask({ call: "extract", name }, bytes);
}
