/** The calls of the service. The key is kept in memory only, and every call goes to the address of the page. */
import type { Comparison } from "../compare/page";

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

/** A comparison with the parts that differ. */
export type ServiceComparison = Comparison & { differences: Difference[] };

export interface Verdict {
  id: string | null;
  verdict: "kept" | "duplicate";
  of: string | null;
  cluster: string | null;
  similarity: number | null;
  seq: number | null;
}

export interface QueryVerdict extends Verdict {
  matches?: { id: string; similarity: number; seq: number }[];
}

export interface StoredDocument extends Verdict {
  text?: string;
  time?: string | number;
}

export interface Cluster {
  cluster: string;
  kept: Verdict;
  members: Verdict[];
  more: boolean;
  next: string | null;
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
  ) {
    super(message);
  }
}

const encode = encodeURIComponent;

export class Service {
  private key = "";

  /** Sets the key that is sent with every call from now on. */
  setKey(key: string): void {
    this.key = key;
  }

  /** Sends a call. A body of bytes is a file, any other one is sent as JSON. */
  private async call(method: string, path: string, body?: unknown): Promise<Response> {
    const headers: Record<string, string> = {};
    const request: RequestInit = { method, headers, credentials: "omit", cache: "no-store" };
    if (this.key) headers["authorization"] = `Bearer ${this.key}`;
    if (body !== undefined) {
      const isFile = body instanceof Uint8Array;
      headers["content-type"] = isFile ? "application/octet-stream" : "application/json";
      request.body = isFile ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body);
    }
    return fetch(path, request);
  }

  private async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.call(method, path, body);
    if (!response.ok) {
      const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string; code?: string };
      throw new ServiceProblem(response.status, problem.code ?? "", problem.detail ?? problem.title ?? `${response.status}`);
    }
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

  /** Returns the metrics, or an empty text if the key does not permit them. */
  async getMetrics(): Promise<string> {
    const response = await this.call("GET", "/metrics");
    return response.ok ? response.text() : "";
  }

  query = (name: string, text: string): Promise<QueryVerdict> =>
    this.ask("POST", `/v1/collections/${encode(name)}/query?limit=20`, { text });
  insert = (name: string, id: string, text: string): Promise<Verdict> =>
    this.ask("POST", `/v1/collections/${encode(name)}/documents`, { id, text });
  getDocument = (name: string, id: string): Promise<StoredDocument> =>
    this.ask("GET", `/v1/collections/${encode(name)}/documents/${encode(id)}`);
  listClusters = (name: string, after: string | null): Promise<{ clusters: Cluster[]; next: string | null }> =>
    this.ask("GET", `/v1/collections/${encode(name)}/clusters?limit=100&members=100${after ? `&after=${encode(after)}` : ""}`);
  /** Returns a cluster with its newest members, at most this many. */
  getCluster = (name: string, id: string, members: number): Promise<Cluster> =>
    this.ask("GET", `/v1/collections/${encode(name)}/clusters/${encode(id)}?members=${members}`);
  getDocuments = async (name: string, ids: readonly string[]): Promise<(StoredDocument | null)[]> =>
    (await this.ask<{ documents: (StoredDocument | null)[] }>("POST", `/v1/collections/${encode(name)}/documents/get`, { ids })).documents;
  /** Lists kept documents with their texts. */
  listKept = (name: string, limit: number): Promise<{ documents: StoredDocument[] }> =>
    this.ask("GET", `/v1/collections/${encode(name)}/documents?verdict=kept&text=true&limit=${limit}`);
  /** Returns the first document after a sequence number; undefined if there is none. */
  findDocumentAfter = async (name: string, seq: number): Promise<StoredDocument | undefined> =>
    (await this.ask<{ documents: StoredDocument[] }>("GET", `/v1/collections/${encode(name)}/documents?limit=1&after=${seq}`)).documents[0];
  /** Returns kept documents that a text has passages from. */
  findSources = async (name: string, text: string, limit: number): Promise<Source[]> =>
    (await this.ask<{ sources: Source[] }>("POST", `/v1/collections/${encode(name)}/passages`, { text, limit })).sources;

  listRecipes = async (): Promise<string[]> => (await this.ask<{ recipes: { name: string }[] }>("GET", "/v1/recipes")).recipes.map((it) => it.name);
  createCollection = (name: string, settings: Partial<Settings>): Promise<{ name: string; settings: Settings }> =>
    this.ask("PUT", `/v1/collections/${encode(name)}`, settings);
  changeCollection = (name: string, change: Partial<Settings>): Promise<{ settings: Settings }> =>
    this.ask("PATCH", `/v1/collections/${encode(name)}`, change);
  deleteCollection = (name: string): Promise<void> => this.ask("DELETE", `/v1/collections/${encode(name)}`);
  listSnapshots = async (name: string): Promise<Snapshot[]> =>
    (await this.ask<{ snapshots: Snapshot[] }>("GET", `/v1/snapshots?collection=${encode(name)}`)).snapshots;
  makeSnapshot = (collection: string, name: string): Promise<{ name: string }> =>
    this.ask("POST", `/v1/collections/${encode(collection)}/snapshot`, { name });

  /** Returns the passages that two texts share. */
  findShared = async (a: string, b: string): Promise<SharedPassages> =>
    (await this.ask<{ results: SharedPassages[] }>("POST", "/v1/passages", { pairs: [{ a, b }] })).results[0]!;
  /** Returns the text of a document file. */
  extractText = async (name: string, bytes: Uint8Array): Promise<string> =>
    (await this.ask<{ text: string }>("POST", `/v1/extract?name=${encode(name)}`, bytes)).text;
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

export interface Difference {
  side: "both" | "kept" | "removed";
  words: string;
}

/** Returns differences as runs of lengths, as reports have them. */
export function toRuns(differences: readonly Difference[]): number[] {
  return differences.flatMap(({ side, words }) => {
    if (side === "both") return [0, words.length, words.length];
    return side === "kept" ? [2, words.length, 0] : [3, 0, words.length];
  });
}

/** Returns the sum of a metric over all series that have a label; null without such a series. */
export function sumSamples(metrics: string, name: string, label: string): number | null {
  const values = metrics.split("\n").flatMap((line) => (line.startsWith(`${name}{`) && line.includes(label) ? [Number(line.slice(line.lastIndexOf(" ") + 1))] : []));
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

/** Returns the samples of a metric with these labels, by the value of one further label. */
export function readSamples(metrics: string, name: string, labels: string, by: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of metrics.split("\n")) {
    if (!line.startsWith(`${name}{`) || !line.includes(labels)) continue;
    const value = new RegExp(`${by}="([^"]*)"`).exec(line);
    if (value) samples.set(value[1]!, Number(line.slice(line.lastIndexOf(" ") + 1)));
  }
  return samples;
}

/** Returns the upper bound of the bucket in which a quantile lies, in seconds; null without observations. */
export function findQuantile(buckets: ReadonlyMap<string, number>, quantile: number): number | null {
  const sorted = [...buckets].map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count] as const).sort((a, b) => a[0] - b[0]);
  const total = sorted[sorted.length - 1]?.[1] ?? 0;
  if (total === 0) return null;
  return sorted.find(([, count]) => count >= quantile * total)?.[0] ?? null;
}
