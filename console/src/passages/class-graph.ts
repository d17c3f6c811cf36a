/** Where the documents of a class stand in a picture: near those with which they share text. */

/** Two documents by their numbers, and the share of text that they have in common. */
export type ShareEdge = readonly [number, number, number];

/** Documents that are drawn, first those that share most. */
export const maxDocuments = 300;

/** Rounds of the layout. More change no picture visibly. */
const rounds = 140;

/** Place in a square from 0 to 1. */
export type GraphPlace = readonly [x: number, y: number];

/** Returns the edges whose share is at least a threshold. */
export const visibleEdges = (edges: readonly ShareEdge[], threshold: number): ShareEdge[] => edges.filter(([, , share]) => share >= threshold);

/** Returns the groups of documents that edges connect, the largest first; documents without an edge are in none. */
export function findGroups(count: number, edges: readonly ShareEdge[]): number[][] {
  const parents = Array.from({ length: count }, (_, at) => at);
  const rootOf = (at: number): number => {
    while (parents[at] !== at) at = parents[at] = parents[parents[at]!]!;
    return at;
  };
  for (const [a, b] of edges) parents[rootOf(a)] = rootOf(b);
  const groups = new Map<number, number[]>();
  const connected = new Set(edges.flatMap(([a, b]) => [a, b]));
  [...connected].sort((a, b) => a - b).forEach((at) => {
    const root = rootOf(at);
    groups.set(root, [...(groups.get(root) ?? []), at]);
  });
  return [...groups.values()].sort((a, b) => b.length - a.length || a[0]! - b[0]!);
}

/**
 * Returns the places of a group by forces (Fruchterman and Reingold 1991): documents repel each other, and edges pull by
 * their share. The result depends on the group and its edges alone.
 */
export function layOutGroup(members: readonly number[], edges: readonly ShareEdge[]): GraphPlace[] {
  const count = members.length;
  const numbers = new Map(members.map((member, at) => [member, at]));
  const own = edges.flatMap(([a, b, share]) => {
    const [from, to] = [numbers.get(a), numbers.get(b)];
    return from === undefined || to === undefined ? [] : [[from, to, share] as const];
  });
  const places = members.map((_, at): [number, number] => {
    const angle = (2 * Math.PI * at) / count;
    return [0.5 + 0.4 * Math.cos(angle), 0.5 + 0.4 * Math.sin(angle)];
  });
  const ideal = Math.sqrt(1 / count);
  for (let round = 0; round < rounds; round += 1) {
    const moves = places.map((): [number, number] => [0, 0]);
    const push = (a: number, b: number, force: (distance: number) => number) => {
      const [x, y] = [places[a]![0] - places[b]![0], places[a]![1] - places[b]![1]];
      const distance = Math.max(1e-3, Math.hypot(x, y));
      const size = force(distance) / distance;
      moves[a]![0] += x * size;
      moves[a]![1] += y * size;
      moves[b]![0] -= x * size;
      moves[b]![1] -= y * size;
    };
    for (let a = 0; a < count; a += 1) for (let b = a + 1; b < count; b += 1) push(a, b, (distance) => (ideal * ideal) / distance);
    for (const [a, b, share] of own) push(a, b, (distance) => (-distance * distance * (0.5 + share)) / ideal);
    const most = 0.1 * (1 - round / rounds);
    places.forEach((place, at) => {
      const length = Math.max(1e-9, Math.hypot(...moves[at]!));
      const step = Math.min(length, most) / length;
      place[0] += moves[at]![0] * step;
      place[1] += moves[at]![1] * step;
    });
  }
  return fitPlaces(places);
}

/** Moves places so that they fill a square from 0 to 1. */
function fitPlaces(places: readonly (readonly [number, number])[]): GraphPlace[] {
  const xs = places.map(([x]) => x);
  const ys = places.map(([, y]) => y);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const size = Math.max(Math.max(...xs) - left, Math.max(...ys) - top, 1e-6);
  const [width, height] = [Math.max(...xs) - left, Math.max(...ys) - top];
  return places.map(([x, y]) => [0.5 + (x - left - width / 2) / size, 0.5 + (y - top - height / 2) / size]);
}

/** A group in a picture: its members, their places in pixels, and the size of its cell. */
export interface PlacedGroup {
  members: number[];
  places: GraphPlace[];
}

/** Margin around a group in pixels, which has room for names. */
const margin = 30;

/** Returns all groups side by side, in rows of a width; larger groups have more room. Also returns the height. */
export function placeGroups(groups: readonly number[][], edges: readonly ShareEdge[], width: number): { groups: PlacedGroup[]; height: number } {
  const sizes = groups.map((members) => Math.min(width, members.length > 2 ? 90 + 62 * Math.sqrt(members.length) : 140));
  const placed: PlacedGroup[] = [];
  let y = 0;
  for (let first = 0; first < groups.length; ) {
    // A row has the groups that fit beside each other, in its middle.
    let [last, all] = [first, 0];
    while (last < groups.length && (last === first || all + sizes[last]! <= width)) all += sizes[last++]!;
    let x = (width - all) / 2;
    for (let at = first; at < last; at += 1) {
      const room = sizes[at]! - 2 * margin;
      const places = layOutGroup(groups[at]!, edges).map(([left, top]): GraphPlace => [x + margin + left * room, y + margin + top * room]);
      placed.push({ members: groups[at]!, places });
      x += sizes[at]!;
    }
    y += sizes[first]!;
    first = last;
  }
  return { groups: placed, height: Math.max(90, y) };
}
