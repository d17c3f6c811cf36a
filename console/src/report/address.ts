/** Addresses of a report, behind `#` in that of its file: `#/review/equal`. So Back, reloading and links lead to a section. */
import { useEffect, useState } from "preact/hooks";
import type { Shown } from "./review";

export const allSections = ["overview", "review", "forms", "clusters", "run"] as const;
export type Section = (typeof allSections)[number];

/** A section, and what it shows. */
export interface View {
  section: Section;
  show?: Shown;
}

const allShown: readonly string[] = ["nearest", "equal", "all"] satisfies Shown[];

/** Returns what a hash shows: the first section if it is none of these. */
export function parseView(hash: string, sections: readonly Section[]): View {
  const [section = "", show = ""] = hash.replace(/^#\//, "").split("/");
  const known = sections.find((it) => it === section);
  if (known === undefined) return { section: sections[0]! };
  return known === "review" && allShown.includes(show) ? { section: known, show: show as Shown } : { section: known };
}

export const writeView = ({ section, show }: View): string => `#/${section}${show ? `/${show}` : ""}`;

/** Returns what the address shows, and a function that shows something else. */
export function useView(sections: readonly Section[]): [View, (view: View) => void] {
  const [view, setView] = useState(() => parseView(location.hash, sections));
  useEffect(() => {
    const onHash = () => setView(parseView(location.hash, sections));
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  const show = (next: View) => {
    setView(next);
    location.hash = writeView(next);
  };
  return [view, show];
}
