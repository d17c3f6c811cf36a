/** The calls of the service. The key is kept in memory only, and every call goes to the address of the page. */
import type { Comparison } from "../compare/page";

export interface CollectionState {
  name: string;
  state: string;
}

export interface Stats {
  rows: number;
  kept: number;
  memory: Record<string, number>;
  partitions: number;
  stopped: string | null;
}

export interface Settings {
  recipe: string;
  method: string;
  measure: string;
  threshold?: number;
  distance?: number;
  window?: string | null;
  holds: string;
}

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
  time?: string;
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

  private async call(method: string, path: string, body?: unknown): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.key) headers["authorization"] = `Bearer ${this.key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const request: RequestInit = { method, headers, credentials: "omit", cache: "no-store" };
    if (body !== undefined) request.body = JSON.stringify(body);
    return fetch(path, request);
  }

  private async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.call(method, path, body);
    if (!response.ok) {
      const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string };
      throw new ServiceProblem(response.status, problem.detail ?? problem.title ?? `${response.status}`);
    }
    return (await response.json()) as T;
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

  /** Compares two texts by the settings of a collection, or by the defaults. */
  async compare(a: string, b: string, settings?: Settings): Promise<Comparison & { differences: Difference[] }> {
    const body: Record<string, unknown> = { pairs: [{ a, b }] };
    if (settings) {
      body["recipe"] = settings.recipe;
      body["method"] = settings.method;
      body["measure"] = settings.measure;
      if (settings.threshold !== undefined) body["threshold"] = settings.threshold;
    }
    const { results } = await this.ask<{ results: (Comparison & { differences: Difference[] })[] }>("POST", "/v1/compare", body);
    return results[0]!;
  }
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
