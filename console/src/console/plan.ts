/**
 * The bands of MinHash slots by which pairs of long documents are found, as the service plans them: the most rows with
 * which a pair at the threshold is found with a probability of 0.99. A test compares them with the plans of the command.
 */
export interface BandPlan {
  bands: number;
  rows: number;
}

/** Slots of a signature in every recipe whose name the console lists. */
export const slots = 128;

/** Probability with which a pair at the threshold is found, and the part of it that the cutoff of slots may cost. */
const recall = 0.99;
const cutoffLoss = 0.0005;

/** Returns the probability that a pair with this Jaccard index is found: 1 − (1 − J^rows)^bands. */
export const findProbability = ({ bands, rows }: BandPlan, jaccard: number): number => 1 - (1 - jaccard ** rows) ** bands;

/** Returns the bands for a threshold; null if no bands find pairs as dissimilar. */
export function planBands(threshold: number): BandPlan | null {
  for (let rows = slots; rows >= 1; rows -= 1) {
    const plan = { bands: Math.floor(slots / rows), rows };
    if (findProbability(plan, threshold) - cutoffLoss >= recall) return plan;
  }
  return null;
}

/** Returns the probabilities at Jaccard indexes 0, 0.01, … 1. */
export const drawCurve = (plan: BandPlan): number[] => Array.from({ length: 101 }, (_, at) => findProbability(plan, at / 100));

/** A setting from 0 to 1 by which labelled pairs are judged. */
export interface LabelledPair {
  similarity: number;
  isSame: boolean;
}

export interface LabelFigures {
  /** Pairs at the threshold or above that are the same, and that are not; pairs below it that are the same. */
  found: number;
  wrong: number;
  missed: number;
  /** Null where nothing can be said. */
  precision: number | null;
  recall: number | null;
  f1: number | null;
}

/** Returns precision and recall of a threshold over labelled pairs. */
export function judgeThreshold(pairs: readonly LabelledPair[], threshold: number): LabelFigures {
  const count = (isSame: boolean, isMatch: boolean) => pairs.filter((it) => it.isSame === isSame && it.similarity >= threshold === isMatch).length;
  const [found, wrong, missed] = [count(true, true), count(false, true), count(true, false)];
  const share = (part: number, whole: number) => (whole > 0 ? part / whole : null);
  return {
    found,
    wrong,
    missed,
    precision: share(found, found + wrong),
    recall: share(found, found + missed),
    f1: share(2 * found, 2 * found + wrong + missed),
  };
}

/**
 * Returns the threshold, in hundredths, with the highest F1 over labelled pairs; null without pairs. Of equal ones
 * the highest counts, because nothing was seen of the pairs between.
 */
export function findBestThreshold(pairs: readonly LabelledPair[]): number | null {
  let best: [number, number] | null = null;
  for (let at = 1; at <= 100; at += 1) {
    const { f1 } = judgeThreshold(pairs, at / 100);
    if (f1 !== null && (!best || f1 >= best[1])) best = [at / 100, f1];
  }
  return best?.[0] ?? null;
}
