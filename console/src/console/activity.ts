/** Figures of what the service did in the last ten minutes, as it remembers them. */
import type { Activity, ActivitySample } from "./service";

/** Documents per second in an interval; `duplicates` is null where it is not known. */
export interface Rate {
  inserted: number;
  duplicates: number | null;
}

/** Returns the rates of the intervals. */
export const findRates = (samples: readonly ActivitySample[]): Rate[] =>
  samples.map(({ seconds, kept, duplicates }) => ({ inserted: (kept + duplicates) / (seconds || 1), duplicates: duplicates / (seconds || 1) }));

/**
 * Returns the bound within which a part of all inserts of the samples ended, in seconds; `Infinity` if that is beyond the
 * last bound, and null without inserts. So the figure forgets an insert ten minutes after it.
 */
export function findQuantile({ bounds_seconds: bounds, samples }: Activity, quantile: number): number | null {
  const counts = [...bounds, Infinity].map((_, at) => samples.reduce((sum, it) => sum + (it.insert_times[at] ?? 0), 0));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  const at = counts.findIndex((count) => (below += count) >= quantile * total);
  return bounds[at] ?? Infinity;
}

/** Documents of all collections at a moment, in milliseconds. */
export interface DocumentCount {
  at: number;
  documents: number;
}

/** Returns the rate between two countings, where the key does not permit the activity. */
export function countRate(before: DocumentCount, now: DocumentCount): Rate {
  const documents = Math.max(0, now.documents - before.documents);
  return { inserted: (1000 * documents) / (now.at - before.at || 1), duplicates: null };
}
