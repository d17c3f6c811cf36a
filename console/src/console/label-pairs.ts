/**
 * Pairs of a collection for a person to label. They come from two places, because the service lists no pairs:
 *
 * - duplicates with the kept document that they name, from the clusters: at the threshold or above;
 * - kept documents that share a passage, from the search for passages: mostly below the threshold, because of two
 *   documents that match one is not kept.
 *
 * Pairs that share no passage and do not match are never seen.
 */
import type { Decision } from "../components/save-file";
import { countBytes, maxComparedBytes, ServiceProblem, toRuns, type Service, type Settings, type StoredDocument } from "./service";

/** Largest number of pairs from each place. */
const maxPairs = 60;

/** Pages of clusters that are read, 100 clusters each. */
const maxClusterPages = 10;

/** Kept documents whose sources are looked up. */
const maxSearched = 60;

/** Pairs in one request to compare. */
const pairsAtATime = 10;

/** Where a pair comes from. */
export type PairOrigin = "cluster" | "passage";

export interface LabelCandidate {
  /** Ids of both documents, the earlier one first. */
  ids: [string, string];
  texts: [string, string];
  origin: PairOrigin;
  similarity: number;
  /** Runs of their differences, as reports have them. */
  runs: number[];
  decision: Omit<Decision, "label">;
}

export interface Collected {
  pairs: LabelCandidate[];
  /** Pairs that were left out because both texts together are too long to compare. */
  tooLong: number;
  /** `true` if passages are not indexed yet, so that pairs below the threshold are missing. */
  isIndexing: boolean;
}

interface FoundPair {
  ids: [string, string];
  texts: [string, string];
  origin: PairOrigin;
}

const keyOf = ([a, b]: readonly [string, string]): string => JSON.stringify(a < b ? [a, b] : [b, a]);

/** Returns duplicates with their kept documents, those nearest to the threshold first. */
async function findDuplicates(service: Service, name: string): Promise<FoundPair[]> {
  const found: { ids: [string, string]; similarity: number }[] = [];
  let after: string | null = null;
  for (let page = 0; page < maxClusterPages; page += 1) {
    const { clusters, next }: Awaited<ReturnType<Service["listClusters"]>> = await service.listClusters(name, after);
    for (const { cluster, members } of clusters) {
      for (const { id, similarity } of members) {
        // Texts that are equal after normalisation need no person.
        if (id !== null && similarity !== null && similarity < 1) found.push({ ids: [cluster, id], similarity });
      }
    }
    after = next;
    if (!after) break;
  }
  const nearest = found.sort((a, b) => a.similarity - b.similarity).slice(0, maxPairs);
  const texts = await readTexts(service, name, nearest.flatMap((it) => it.ids));
  return nearest.flatMap(({ ids }) => withTexts(ids, texts, "cluster"));
}

/** Returns kept documents that share passages, those that share most first. */
async function findKeptPairs(service: Service, name: string): Promise<FoundPair[]> {
  const { documents } = await service.listKept(name, maxSearched);
  const found = new Map<string, { ids: [string, string]; copied: number }>();
  for (const { id, text, seq } of documents) {
    if (id === null || !text) continue;
    for (const source of await service.findSources(name, text, 5)) {
      if (source.id === id) continue;
      const ids: [string, string] = (seq ?? 0) < source.seq ? [id, source.id] : [source.id, id];
      found.set(keyOf(ids), { ids, copied: source.copied });
    }
  }
  const most = [...found.values()].sort((a, b) => b.copied - a.copied).slice(0, maxPairs);
  const texts = await readTexts(service, name, most.flatMap((it) => it.ids));
  return most.flatMap(({ ids }) => withTexts(ids, texts, "passage"));
}

async function readTexts(service: Service, name: string, ids: readonly string[]): Promise<Map<string, string>> {
  const distinct = [...new Set(ids)];
  const documents: (StoredDocument | null)[] = distinct.length > 0 ? await service.getDocuments(name, distinct) : [];
  return new Map(distinct.map((id, at) => [id, documents[at]?.text ?? ""]));
}

function withTexts(ids: [string, string], texts: ReadonlyMap<string, string>, origin: PairOrigin): FoundPair[] {
  const both: [string, string] = [texts.get(ids[0]) ?? "", texts.get(ids[1]) ?? ""];
  return both[0] && both[1] && both[0] !== both[1] ? [{ ids, texts: both, origin }] : [];
}

const bytesOf = (pair: FoundPair): number => countBytes(pair.texts[0]) + countBytes(pair.texts[1]);

/** Cuts pairs into requests. */
function cutIntoRequests(pairs: readonly FoundPair[]): FoundPair[][] {
  const requests: FoundPair[][] = [];
  let room = 0;
  for (const pair of pairs) {
    const bytes = bytesOf(pair);
    const last = requests[requests.length - 1];
    if (last && last.length < pairsAtATime && bytes <= room) {
      last.push(pair);
      room -= bytes;
    } else {
      requests.push([pair]);
      room = maxComparedBytes - bytes;
    }
  }
  return requests;
}

/** Collects the pairs of a collection, those nearest to its threshold first. */
export async function collectPairs(service: Service, name: string, settings: Settings, onProgress: (done: number, total: number) => void): Promise<Collected> {
  let isIndexing = false;
  const duplicates = await findDuplicates(service, name);
  const kept = await findKeptPairs(service, name).catch((problem: unknown) => {
    if (!(problem instanceof ServiceProblem) || !problem.code.startsWith("passage")) throw problem;
    isIndexing = true;
    return [];
  });
  const known = new Set(duplicates.map((it) => keyOf(it.ids)));
  const all = [...duplicates, ...kept.filter((it) => !known.has(keyOf(it.ids)))];
  const fitting = all.filter((it) => bytesOf(it) <= maxComparedBytes);
  const pairs: LabelCandidate[] = [];
  for (const request of cutIntoRequests(fitting)) {
    onProgress(pairs.length, fitting.length);
    const compared = await service.comparePairs(request.map(({ texts: [a, b] }) => ({ a, b })), settings);
    compared.forEach((it, at) => {
      const { ids, texts, origin } = request[at]!;
      if (it.similarity === null || it.similarity === 1) return;
      const decision = { a: it.a.content, b: it.b.content, recipe: it.recipe_id, a_key: it.a.key, b_key: it.b.key, a_id: ids[0], b_id: ids[1], similarity: it.similarity };
      pairs.push({ ids, texts, origin, similarity: it.similarity, runs: toRuns(it.aligned), decision });
    });
  }
  const threshold = settings.threshold ?? 0;
  pairs.sort((a, b) => Math.abs(a.similarity - threshold) - Math.abs(b.similarity - threshold));
  return { pairs, tooLong: all.length - fitting.length, isIndexing };
}
