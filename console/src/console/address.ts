/**
 * Addresses of the console, behind `#` in that of the page: `#/clusters/news/1` is the cluster of the document 1 in the
 * collection `news`. So Back, reloading and links work without a call of the service.
 */

/** Sections that have a tab, in their order. */
export const sections = ["overview", "collections", "check", "documents", "clusters", "label", "passages", "compare", "administration"] as const;
export type TabSection = (typeof sections)[number];

/** All sections: `new` is the form of a new collection. */
export type Section = TabSection | "new";

export interface Address {
  section: Section;
  /** Name of the collection that is shown; null if none is chosen. */
  collection: string | null;
  /** Id of the document or cluster that is shown. */
  item: string | null;
}

const isSection = (name: string): name is Section => name === "new" || (sections as readonly string[]).includes(name);

/** Returns a part of an address as it was before it was encoded; null if it is missing or was not encoded. */
function decodePart(part: string | undefined): string | null {
  try {
    return part ? decodeURIComponent(part) : null;
  } catch {
    return null;
  }
}

/** Returns the address that a hash has; null if it is a place inside a page, such as `#a1`. The name of a section alone is one. */
export function parseAddress(hash: string): Address | null {
  const named = hash.slice(1);
  if (isSection(named)) return { section: named, collection: null, item: null };
  if (hash !== "" && !hash.startsWith("#/")) return null;
  const [section = "", collection, item] = hash.slice(2).split("/");
  return { section: isSection(section) ? section : "overview", collection: decodePart(collection), item: decodePart(item) };
}

/** Returns the hash of an address. */
export function writeAddress({ section, collection, item }: Address): string {
  const parts = collection === null ? [] : item === null ? [collection] : [collection, item];
  return `#/${[section, ...parts.map(encodeURIComponent)].join("/")}`;
}

/** Returns the tab under which a section is found. */
export const findTab = (section: Section): TabSection => (section === "new" ? "collections" : section);
