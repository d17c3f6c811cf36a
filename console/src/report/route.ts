/** Words for the route by which the pair of a removal was found. */
import type { MessageKey, Wording } from "../language/catalog";
import type { DedupData } from "./data";

/** Returns the words for a route. Of the join of short documents they name the limit that the plan has. */
export function sayRoute(say: Wording, { plan }: Pick<DedupData, "plan">, route: string): string {
  const limit = plan.method === "auto" ? plan.joined_features : null;
  if (route === "join" && limit !== null) return say.text("route.joinUpTo", { n: limit });
  return say.text(`route.${route}` as MessageKey);
}
