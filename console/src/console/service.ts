/** The calls of the service. The key is kept in memory only, and every call goes to the address of the page. */
import type { Comparison } from "../compare/page";
import { RunKind } from "../components/side-by-side";

export interface CollectionState {
  name: string;
  state: string;
}

export interface Stats {
  rows: number;
  kept: number;
  /** Largest sequence number on disk. */
  last_durable_row: number;
  memory: Record<string, number>;
  partitions: number;
  stopped: string | null;
}

/** Settings of a collection. A collection can be created with what is answered of another one. */
export interface Settings {
  recipe: string;
  method: string;
  measure: string;
  threshold?: number;
  distance?: number;
  candidates?: string;
  sentences?: number;
  unit?: string;
  window?: string | null;
  skew?: string;
  refresh?: boolean;
  expire?: string;
  holds: string;
  on_conflict?: string;
}

export interface Snapshot {
  collection: string;
  name: string;
  bytes: number;
  time: string;
}

/** A document file that the service has read. */
export interface ExtractedFile {
  text: string;
  /** The encoding in which it was read, if its bytes alone suggest it. */
  guessed_encoding: string | null;
}

export interface NamedText {
  id: string;
  text: string;
}

/** A source of a text. */
export interface Source {
  id: string;
  seq: number;
  copied: number;
}

/** Passages of two texts. */
export type SharedPassages = Comparison["shared"];

/** A comparison with the parts of both texts. */
export type ServiceComparison = Comparison & { aligned: AlignedPart[] };

export interface Verdict {
  id: string | null;
  verdict: "kept" | "duplicate";
  of: string | null;
  cluster: string | null;
  similarity: number | null;
  seq: number | null;
}

/** A kept document, and its similarity to the text of a query. */
export interface QueryMatch {
  id: string;
  similarity: number;
  seq: number;
}

/** The kept document that is most similar to a text that matches none. */
export interface Nearest {
  document: QueryMatch | null;
  /** Kept documents that were compared. */
  considered: number;
  /** `true` if these are all kept documents. */
  complete: boolean;
}

export interface QueryVerdict extends Verdict {
  matches?: QueryMatch[];
  nearest?: Nearest;
}

/** A line that was sent, in the place of its answer: its verdict, or why it is refused. */
export type LineAnswer = Verdict | { id: string | null; line: number; problem: { code: string; detail: string } };

/** An uploaded recipe. */
export interface UploadedRecipe {
  name: string;
  recipe_id: string | null;
  bytes: number;
  state: string;
}

/** What the service did in an interval. */
export interface ActivitySample {
  /** End of the interval. */
  time: string;
  seconds: number;
  kept: number;
  duplicates: number;
  /** Requests to insert by the class of their time: one for each bound, and one for longer ones. Empty without requests. */
  insert_times: number[];
}

export interface Activity {
  interval_seconds: number;
  bounds_seconds: number[];
  samples: ActivitySample[];
}

export interface StoredDocument extends Verdict {
  text?: string;
  time?: string | number;
  /** Fingerprint, in a collection of fingerprints. */
  fingerprint?: string;
  /** What the sender gave besides the text. */
  meta?: unknown;
  /** `true` if the kept document that this one repeats was deleted. */
  of_gone?: boolean;
}

/** Some documents in the order of their numbers, and the number after which the next ones begin; null at the end. */
export interface DocumentPage {
  documents: StoredDocument[];
  next: number | null;
}

/** Which documents are listed. */
export interface DocumentFilter {
  verdict: "" | "kept" | "duplicate";
  /** Top-level fields of `meta` with their values. All must hold. */
  conditions: readonly (readonly [field: string, value: string])[];
}

/** Returns `true` if a filter leaves documents out. */
export const hasConditions = ({ verdict, conditions }: DocumentFilter): boolean => verdict !== "" || conditions.length > 0;

export interface Cluster {
  cluster: string;
  kept: Verdict;
  members: Verdict[];
  more: boolean;
  next: string | null;
}

/** A decision of a person on two texts. */
export interface StoredDecision {
  seq: number;
  a: string;
  b: string;
  label: "same" | "different";
  a_id: string | null;
  b_id: string | null;
}

/** A decision that is sent, on the texts of two documents. */
export interface NewDecision {
  a_id: string;
  b_id: string;
  label: "same" | "different" | "none";
}

/** The effect of a decision. */
export interface DecisionResult {
  outcome: "applied" | "recorded" | "unchanged";
  /** The first documents that were judged again. */
  changed: Verdict[];
  /** Number of all documents that were judged again. */
  changed_total: number;
}

export interface Readiness {
  ready: boolean;
  collections: number;
  [state: string]: unknown;
}

/** An answer that is a problem. */
export class ServiceProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Seconds after which the same request may succeed; null if it is refused for good. */
    readonly retrySeconds: number | null = null,
  ) {
    super(message);
  }
}

/** Lines of JSON as a body, one value on each. */
class JsonLines {
  constructor(readonly text: string) {}
}

const encode = encodeURIComponent;

/**
 * Returns the end of a path for a document. Browsers resolve the segments `.` and `..`, encoded or not, so such an id stands in
 * the query.
 */
const encodeId = (id: string): string => (id === "." || id === ".." ? `-?id=${id}` : encode(id));

/** Parts of JavaScript that keep the digits of a number of JSON. Browsers before 2025 have none of them. */
interface ExactJson {
  parse?: (text: string, revive: (key: string, value: unknown, context?: { source?: string }) => unknown) => unknown;
  rawJSON?: (source: string) => unknown;
}

/** Parses a document. Numbers of its `meta` that JavaScript would round, such as 64-bit ids, keep their digits where they are written again. */
export function parseDocument(text: string): StoredDocument {
  const document = JSON.parse(text) as StoredDocument;
  // Other numbers are used in calculations, so they must stay numbers.
  if ("meta" in document) document.meta = (parseExactly(text) as StoredDocument).meta;
  return document;
}

/** Parses JSON. A number that is not written as JavaScript writes it becomes an object that is written as it was. */
function parseExactly(text: string): unknown {
  const json = JSON as ExactJson;
  if (!json.parse || !json.rawJSON) return JSON.parse(text);
  return json.parse(text, (_, value, context) => (typeof value === "number" && context?.source && String(value) !== context.source ? json.rawJSON!(context.source) : value));
}

/** Returns the path of a document. */
export const documentPath = (name: string, id: string): string => `/v1/collections/${encode(name)}/documents/${encodeId(id)}`;

/** Returns the paths that check a text and insert documents. */
export const queryPath = (name: string): string => `/v1/collections/${encode(name)}/query?limit=20&nearest=true`;
export const insertPath = (name: string): string => `/v1/collections/${encode(name)}/documents`;

/** Returns the path of a collection. */
export const collectionPath = (name: string): string => `/v1/collections/${encode(name)}`;

/** Returns the path of a list of documents. */
export function listPath(name: string, { verdict, conditions }: DocumentFilter, after: number, limit: number): string {
  const conditional = conditions.map(([field, value]) => `&meta.${encode(field)}=${encode(value)}`).join("");
  return `/v1/collections/${encode(name)}/documents?limit=${limit}${after > 0 ? `&after=${after}` : ""}${verdict && `&verdict=${verdict}`}${conditional}`;
}

export class Service {
  private key = "";

  /** Sets the key that is sent with every call from now on. */
  setKey(key: string): void {
    this.key = key;
  }

  get hasKey(): boolean {
    return this.key !== "";
  }

  /** Sends a call. A body of bytes is a file, a form has files, lines are sent as they are, any other body as JSON. */
  private async call(method: string, path: string, body?: unknown): Promise<Response> {
    const headers: Record<string, string> = {};
    const request: RequestInit = { method, headers, credentials: "omit", cache: "no-store" };
    if (this.key) headers["authorization"] = `Bearer ${this.key}`;
    if (body instanceof FormData) {
      // The browser adds the type with the boundary of the parts.
      request.body = body;
    } else if (body instanceof Uint8Array) {
      headers["content-type"] = "application/octet-stream";
      request.body = body as Uint8Array<ArrayBuffer>;
    } else if (body instanceof JsonLines) {
      headers["content-type"] = "application/x-ndjson";
      request.body = body.text;
    } else if (body !== undefined) {
      headers["content-type"] = "application/json";
      request.body = JSON.stringify(body);
    }
    const response = await fetch(path, request);
    // The probe of readiness answers 503 with a body that is no problem.
    if (response.ok || path === "/readyz") return response;
    const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string; code?: string };
    const retry = Number(response.headers.get("retry-after") ?? NaN);
    const detail = problem.detail ?? problem.title ?? `${response.status}`;
    throw new ServiceProblem(response.status, problem.code ?? "", detail, Number.isFinite(retry) ? retry : null);
  }

  private async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.call(method, path, body);
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  listCollections = async (): Promise<CollectionState[]> =>
    (await this.ask<{ collections: CollectionState[] }>("GET", "/v1/collections")).collections;
  getSettings = async (name: string): Promise<Settings> =>
    (await this.ask<{ settings: Settings }>("GET", `/v1/collections/${encode(name)}`)).settings;
  getStats = (name: string): Promise<Stats> => this.ask("GET", `/v1/collections/${encode(name)}/stats`);

  /** Returns the state of the service, which answers 503 with a body if it is not ready. */
  async getReadiness(): Promise<Readiness> {
    const response = await this.call("GET", "/readyz");
    return (await response.json()) as Readiness;
  }

  /** Returns the metrics. */
  getMetrics = async (): Promise<string> => (await this.call("GET", "/metrics")).text();
  getActivity = (): Promise<Activity> => this.ask("GET", "/v1/activity");

  /** Checks a text, without the document that has the id, and finds its matches or, without one, the nearest document. */
  query = (name: string, text: string, id?: string): Promise<QueryVerdict> =>
    this.ask("POST", queryPath(name), { text, ...(id && { id }) });
  /** Inserts documents, one on each line, and returns an answer for each. No line is blank. */
  insertLines = async (name: string, lines: readonly string[]): Promise<LineAnswer[]> => {
    const response = await this.call("POST", insertPath(name), new JsonLines(`${lines.join("\n")}\n`));
    const answers = (await response.text()).split("\n").filter((line) => line !== "");
    return answers.map((line) => JSON.parse(line) as LineAnswer);
  };
  insert = (name: string, id: string, text: string): Promise<Verdict> =>
    this.ask("POST", insertPath(name), { id, text });
  getDocument = (name: string, id: string): Promise<StoredDocument> => this.ask("GET", documentPath(name, id));
  /** Returns a document; null if the collection has none with this id. */
  findDocument = async (name: string, id: string): Promise<StoredDocument | null> => {
    try {
      const response = await this.call("GET", documentPath(name, id));
      return parseDocument(await response.text());
    } catch (problem) {
      if (problem instanceof ServiceProblem && problem.code === "no_document") return null;
      throw problem;
    }
  };
  deleteDocument = (name: string, id: string): Promise<void> => this.ask("DELETE", documentPath(name, id));
  listDocuments = (name: string, filter: DocumentFilter, after: number, limit: number): Promise<DocumentPage> =>
    this.ask("GET", listPath(name, filter, after, limit));
  listClusters = (name: string, after: string | null, limit = 100): Promise<{ clusters: Cluster[]; next: string | null }> =>
    this.ask("GET", `/v1/collections/${encode(name)}/clusters?limit=${limit}&members=100${after ? `&after=${encode(after)}` : ""}`);
  /** Returns a cluster with its newest members, at most this many. */
  getCluster = (name: string, id: string, members: number): Promise<Cluster> => {
    const path = encodeId(id);
    return this.ask("GET", `/v1/collections/${encode(name)}/clusters/${path}${path.includes("?") ? "&" : "?"}members=${members}`);
  };
  /** Returns documents, with at most so many characters of their texts if a number is given. */
  getDocuments = async (name: string, ids: readonly string[], characters?: number): Promise<(StoredDocument | null)[]> => {
    const body = { ids, ...(characters !== undefined && { characters }) };
    return (await this.ask<{ documents: (StoredDocument | null)[] }>("POST", `/v1/collections/${encode(name)}/documents/get`, body)).documents;
  };
  /** Lists kept documents with their texts. */
  listKept = (name: string, limit: number): Promise<{ documents: StoredDocument[] }> =>
    this.ask("GET", `/v1/collections/${encode(name)}/documents?verdict=kept&text=true&limit=${limit}`);
  /** Returns the first document after a sequence number; undefined if there is none. */
  findDocumentAfter = async (name: string, seq: number): Promise<StoredDocument | undefined> =>
    (await this.ask<{ documents: StoredDocument[] }>("GET", `/v1/collections/${encode(name)}/documents?limit=1&after=${seq}`)).documents[0];
  /** Returns kept documents that a text has passages from. */
  findSources = async (name: string, text: string, limit: number): Promise<Source[]> =>
    (await this.ask<{ sources: Source[] }>("POST", `/v1/collections/${encode(name)}/passages`, { text, limit })).sources;

  /** Makes a decision. A problem of the decision is thrown as one of the request. */
  decide = async (name: string, decision: NewDecision): Promise<DecisionResult> => {
    type Refused = { problem?: { status: number; code: string; detail: string } };
    const answer = await this.ask<{ results: (DecisionResult & Refused)[] }>("POST", `/v1/collections/${encode(name)}/decisions`, decision);
    const result = answer.results[0]!;
    if (result.problem) throw new ServiceProblem(result.problem.status, result.problem.code, result.problem.detail);
    return result;
  };
  /** Lists decisions after a number, with an id only those on the text of that document. */
  listDecisions = (name: string, after: number | null, document?: string): Promise<{ decisions: StoredDecision[]; next: number | null }> => {
    const query = [after === null ? "" : `&after=${after}`, document === undefined ? "" : `&document=${encode(document)}`].join("");
    return this.ask("GET", `/v1/collections/${encode(name)}/decisions?limit=${document === undefined ? 100 : 1000}${query}`);
  };
  /** Takes back a decision. */
  withdrawDecision = async ({ name, a, b }: { name: string; a: string; b: string }): Promise<DecisionResult> =>
    (await this.ask<{ results: DecisionResult[] }>("DELETE", `/v1/collections/${encode(name)}/decisions/${encode(a)}/${encode(b)}`)).results[0]!;

  listRecipes = async (): Promise<UploadedRecipe[]> => (await this.ask<{ recipes: UploadedRecipe[] }>("GET", "/v1/recipes")).recipes;
  /** Uploads a recipe with the files that it names. */
  uploadRecipe = (name: string, recipe: File, files: readonly File[]): Promise<{ name: string }> => {
    const form = new FormData();
    form.append("recipe", recipe, recipe.name);
    for (const file of files) form.append("file", file, file.name);
    return this.ask("PUT", `/v1/recipes/${encode(name)}`, form);
  };
  deleteRecipe = (name: string): Promise<void> => this.ask("DELETE", `/v1/recipes/${encode(name)}`);

  listAliases = async (): Promise<Record<string, string>> => (await this.ask<{ aliases: Record<string, string> }>("GET", "/v1/aliases")).aliases;
  setAlias = (alias: string, collection: string): Promise<{ alias: string }> => this.ask("PUT", `/v1/aliases/${encode(alias)}`, { collection });
  deleteAlias = (alias: string): Promise<void> => this.ask("DELETE", `/v1/aliases/${encode(alias)}`);

  createCollection = (name: string, settings: Partial<Settings>): Promise<{ name: string; settings: Settings }> =>
    this.ask("PUT", collectionPath(name), settings);
  changeCollection = (name: string, change: Partial<Settings>): Promise<{ settings: Settings }> =>
    this.ask("PATCH", `/v1/collections/${encode(name)}`, change);
  deleteCollection = (name: string): Promise<void> => this.ask("DELETE", `/v1/collections/${encode(name)}`);
  /** Lists the snapshots of a collection, or of all, also of those that exist no more. */
  listSnapshots = async (name: string | null): Promise<Snapshot[]> =>
    (await this.ask<{ snapshots: Snapshot[] }>("GET", `/v1/snapshots${name === null ? "" : `?collection=${encode(name)}`}`)).snapshots;
  /** Makes a collection from a snapshot. */
  restoreSnapshot = ({ collection, name }: Snapshot, restored: string): Promise<{ name: string }> =>
    this.ask("POST", `/v1/collections/${encode(restored)}/restore`, { snapshot: name, from: collection });
  deleteSnapshot = ({ collection, name }: Snapshot): Promise<void> => this.ask("DELETE", `/v1/snapshots/${encode(collection)}/${encode(name)}`);
  makeSnapshot = (collection: string, name: string): Promise<{ name: string }> =>
    this.ask("POST", `/v1/collections/${encode(collection)}/snapshot`, { name });

  /** Returns the passages that two texts share. */
  findShared = async (a: string, b: string): Promise<SharedPassages> =>
    (await this.ask<{ results: SharedPassages[] }>("POST", "/v1/passages", { pairs: [{ a, b }] })).results[0]!;
  /** Returns the text of a document file, and the encoding that its bytes suggest where nothing states it. */
  extractText = (name: string, bytes: Uint8Array): Promise<ExtractedFile> => this.ask("POST", `/v1/extract?name=${encode(name)}`, bytes);
  /** Returns the report of passages, as one HTML page. */
  reportPassages = async (body: PassagesRequest): Promise<string> =>
    (await this.ask<{ report: string }>("POST", "/v1/passages/documents", { ...body, report: true })).report;

  /** Compares pairs of texts by the settings of a collection, or by the defaults. */
  async comparePairs(pairs: readonly { a: string; b: string }[], settings?: Settings): Promise<ServiceComparison[]> {
    const body: Record<string, unknown> = { pairs };
    if (settings) {
      for (const name of ["recipe", "method", "measure", "threshold", "distance", "candidates", "sentences", "unit"] as const) {
        if (settings[name] !== undefined) body[name] = settings[name];
      }
    }
    return (await this.ask<{ results: ServiceComparison[] }>("POST", "/v1/compare", body)).results;
  }

  compare = async (a: string, b: string, settings?: Settings): Promise<ServiceComparison> => (await this.comparePairs([{ a, b }], settings))[0]!;
}

/** Largest total size of the texts of a request to compare, in bytes. */
export const maxComparedBytes = 64 * 1024;

export const countBytes = (text: string): number => new TextEncoder().encode(text).length;

export interface PassagesRequest {
  documents: NamedText[];
  against?: NamedText[];
  min_length?: number;
  reworded?: boolean;
  /** Texts that all were given. */
  base?: string[];
  /** In how many documents a run of words may be. */
  max_documents?: number;
  language?: "en" | "zh";
}

/**
 * A part of two texts in their order, with the fields that it has: `both` if both have the same characters, `a` and `b` if
 * they are equal after normalisation only, and one of these if only that text has it.
 */
export interface AlignedPart {
  a?: string;
  b?: string;
  both?: string;
}

/** Returns the parts of two texts as runs of a kind and two lengths, as reports have them. */
export function toRuns(parts: readonly AlignedPart[]): number[] {
  return parts.flatMap(({ a, b, both }) => {
    if (both !== undefined) return [RunKind.Equal, both.length, both.length];
    if (a !== undefined && b !== undefined) return [RunKind.Normalized, a.length, b.length];
    return a !== undefined ? [RunKind.Kept, a.length, 0] : [RunKind.Removed, 0, b?.length ?? 0];
  });
}

/** Returns the bytes of memory of a collection. */
export const sumMemory = ({ memory }: Stats): number => Object.values(memory).reduce((all, bytes) => all + bytes, 0);
