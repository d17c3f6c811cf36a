/** The beginnings of texts, by which people know documents in lists. */
import { useEffect, useRef, useState } from "preact/hooks";
import { excerptCharacters } from "../components/basics";
import type { Service } from "./service";

/** Documents that are asked for at a time. */
const idsAtATime = 500;

export type Excerpts = ReadonlyMap<string, string>;

const noExcerpts: Excerpts = new Map();

/**
 * Returns the beginnings of the texts of documents, as far as they have arrived. Each document is asked for once. A document
 * without a text is left out. Another array of `ids` begins another search for missing ones.
 */
export function useExcerpts(service: Service, name: string, ids: readonly string[], onProblem: (problem: unknown) => void): Excerpts {
  const [found, setFound] = useState<{ name: string; excerpts: Excerpts }>({ name, excerpts: noExcerpts });
  const asked = useRef<{ name: string; ids: Set<string> }>({ name, ids: new Set() });
  useEffect(() => {
    let isActive = true;
    if (asked.current.name !== name) asked.current = { name, ids: new Set() };
    const known = asked.current.ids;
    const missing = [...new Set(ids)].filter((id) => !known.has(id));
    const readAll = async () => {
      for (let at = 0; at < missing.length && isActive; at += idsAtATime) {
        const some = missing.slice(at, at + idsAtATime);
        for (const id of some) known.add(id);
        const documents = await service.getDocuments(name, some, excerptCharacters);
        const excerpts = some.flatMap((id, place) => (documents[place]?.text ? [[id, documents[place].text] as const] : []));
        setFound((before) => ({ name, excerpts: new Map([...(before.name === name ? before.excerpts : []), ...excerpts]) }));
      }
    };
    if (name) void readAll().catch(onProblem);
    return () => {
      isActive = false;
    };
  }, [name, ids]);
  return found.name === name ? found.excerpts : noExcerpts;
}
