/** Lets the browser save a text as a file. */
export function saveFile(name: string, text: string, type = "application/jsonl"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A decision of a person, as a line of the file that `dedup --decisions`, `eval` and `tune` read. */
export interface Decision {
  /** `sha256:` and the hash of each text. */
  a: string;
  b: string;
  label: "same" | "different";
  /** Identity of the recipe. */
  recipe: string;
  /** Keys of the texts after normalisation. */
  a_key: string;
  b_key: string;
  a_id: string;
  b_id: string;
  similarity?: number;
  /** The form of both texts, if the decision is about all its documents. */
  form?: { name: string; frame: string[] };
}

/** Returns decisions as JSON Lines. */
export const writeDecisionLines = (decisions: readonly Decision[]): string => decisions.map((it) => `${JSON.stringify(it)}\n`).join("");

/** Name of the file of decisions. */
export const decisionFile = "decisions.jsonl";
