/** The data of a dedup report, as docs/report.md describes it. Rows are columns: one array for each field. */
export interface Clusters {
  total: number;
  id: string[];
  source: number[];
  row: number[];
  size: number[];
  least: number[];
  text: number[];
}

export interface Removals {
  total: number;
  id: string[];
  source: number[];
  row: number[];
  cluster: number[];
  similarity: number[];
  route: number[];
  text: number[];
}

/** Forms: those of the run, and after them the possible ones among its removals. */
export interface Forms {
  total: number;
  name: string[];
  possible: boolean[];
  documents: number[];
  removed: (number | null)[];
  frame: string[][];
  /** Two documents with different values, by which a decision names the form; null if there are none. */
  examples: ([ExampleText, ExampleText] | null)[];
}

/** A text as a decision names it. */
export interface ExampleText {
  id: string;
  content: string;
  key: string;
}

export interface FormDocuments {
  form: number[];
  id: string[];
  source: number[];
  row: number[];
  removed: boolean[];
  values: string[][];
}

export interface Share {
  share: number | null;
  low: number;
  high: number;
  cases: number;
}

export interface Audit {
  sampled: number;
  recall: Share;
  precision: Share;
  left_together?: Share;
  by_length: { length: string; recall: Share; precision: Share }[];
}

export interface Summary {
  documents: number;
  against: number;
  kept?: number;
  removed?: number;
  clusters?: number;
  /** Of a report of pairs. */
  pairs?: number;
  equal_texts?: number;
  components?: number;
  rejected: number;
  bytes: number;
  seconds: number;
  /** Absent or null where the run was too short to be measured. */
  bytes_per_second?: number | null;
  threshold: number;
  by_route?: Record<string, number>;
  states?: { too_short: number; symbols_only: number; empty: number };
  largest?: { cluster: string; documents: number; least_similarity: number }[];
  suspicious?: { cluster: string; kind: string; count: number; reason: string }[];
  audit?: Audit;
  decisions?: { same: number; different: number; without_pair: number; of_other_recipes: number; forms?: number; forms_not_applied?: number; forms_without_documents?: number };
  stages?: [string, number][];
}

export interface Plan {
  method: string;
  measure: string;
  threshold: number;
  candidate_threshold: number | null;
  recipe: string;
  recipe_id: string;
  recipe_toml: string;
  keep: string;
  within: string | null;
  window_seconds: number | null;
  bands: number | null;
  rows: number | null;
  joined_features: number | null;
  distance: number | null;
  curve: number[];
  /** Probability at the least Jaccard index of candidates; null without a curve. */
  recall_at_threshold?: number | null;
}

export interface DedupData {
  format: "lookalike-report";
  version: number;
  kind: "dedup" | "pairs";
  program: string;
  created: string;
  language?: "en" | "zh";
  summary: Summary;
  inputs: { name: string; bytes: number | null; reference: boolean }[];
  input_count: number;
  written: [string, string][];
  explain_command: string | null;
  plan: Plan;
  similarities: number[];
  cluster_sizes: [number, number][];
  bad_rows: { reason: string; rows: number; places: string[] }[];
  sources: string[];
  routes: string[];
  clusters: Clusters;
  removals: Removals;
  nearest: number[];
  equal_after_normalization: { read: number; differing: number; rows: number[] };
  texts: { text: string[]; characters: number[]; content: string[]; key: string[] };
  differences: { removal: number[]; runs: number[][] };
  forms: Forms;
  form_documents: FormDocuments;
}

const noForms: Forms = { total: 0, name: [], possible: [], documents: [], removed: [], frame: [], examples: [] };
const noFormDocuments: FormDocuments = { form: [], id: [], source: [], row: [], removed: [], values: [] };

/** The data with the look-ups that the pages need. */
export class Report {
  /** Runs of the difference by removal. */
  readonly runs: ReadonlyMap<number, number[]>;
  /** Removals by cluster: those of cluster c are `members.slice(starts[c], starts[c + 1])`. */
  private readonly starts: Uint32Array;
  private readonly members: Uint32Array;
  private readonly formDocuments: readonly number[][];
  readonly data: DedupData;

  constructor(data: DedupData) {
    // Files of earlier versions have no forms.
    this.data = data = { ...data, forms: data.forms ?? noForms, form_documents: data.form_documents ?? noFormDocuments };
    const { removals, clusters, differences } = data;
    this.runs = new Map(differences.removal.map((row, at) => [row, differences.runs[at]!]));
    this.starts = new Uint32Array(clusters.id.length + 1);
    for (const cluster of removals.cluster) this.starts[cluster + 1]! += 1;
    for (let at = 0; at < clusters.id.length; at += 1) this.starts[at + 1]! += this.starts[at]!;
    const next = this.starts.slice();
    this.members = new Uint32Array(removals.id.length);
    removals.cluster.forEach((cluster, row) => {
      this.members[next[cluster]!++] = row;
    });
    const ofForms: number[][] = data.forms.name.map(() => []);
    data.form_documents.form.forEach((form, row) => ofForms[form]!.push(row));
    this.formDocuments = ofForms;
  }

  /** Returns the rows of the listed documents of a form. */
  documentsOfForm(form: number): readonly number[] {
    return this.formDocuments[form] ?? [];
  }

  /** Returns `true` if a decision can name a form: two of its documents differ. */
  canMarkForm(form: number): boolean {
    return (this.data.forms.examples[form] ?? null) !== null;
  }

  /** Returns the listed removals of a cluster, the least similar first. */
  membersOf(cluster: number): number[] {
    const { similarity } = this.data.removals;
    const members = this.members.slice(this.starts[cluster]!, this.starts[cluster + 1]!);
    return [...members].sort((a, b) => similarity[a]! - similarity[b]! || a - b);
  }

  /** Returns the text of a removed document and of the kept one, if the file has both. */
  textsOf(removal: number): { kept: number; removed: number } | null {
    const removed = this.data.removals.text[removal]!;
    const kept = this.data.clusters.text[this.data.removals.cluster[removal]!]!;
    return removed < 0 || kept < 0 || !this.runs.has(removal) ? null : { kept, removed };
  }

  /** Returns `true` if the two texts are the same, character by character. */
  isIdentical(removal: number): boolean {
    const texts = this.textsOf(removal);
    const { content } = this.data.texts;
    return texts !== null && content[texts.kept] === content[texts.removed];
  }
}

/** Returns the report of a page's data; null if the data is of another kind. */
export const readReport = (data: { kind: string }): Report | null =>
  data.kind === "dedup" || data.kind === "pairs" ? new Report(data as DedupData) : null;
