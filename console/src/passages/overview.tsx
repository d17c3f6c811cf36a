/** The class at a glance: who shares text with whom, from how large a share on, and how the shares are distributed. */
import { useMemo, useState } from "preact/hooks";
import { Card, useWording } from "../components/basics";
import { Histogram, useWidth } from "../components/charts";
import { drawMark, markClass } from "./groups";
import { findGroups, maxDocuments, placeGroups, visibleEdges, type ShareEdge } from "./class-graph";

interface ClassOverviewProps {
  /** Names of the documents as they are shown, those that share most first. */
  names: readonly string[];
  /** Numbers of their groups; −1 for a document without one. */
  groups: readonly number[];
  edges: readonly ShareEdge[];
  /** Number of the selected document, or −1. */
  selected: number;
  onSelect: (at: number) => void;
}

/** Edges that are drawn at first, at least, and for each document. Of more, the largest shares are, because many lines show nothing. */
const fewestEdges = 40;
const edgesPerDocument = 1.5;

/** Documents up to which each has its name beside it. */
const namedDocuments = 30;

/** Characters of a name in the picture. */
const nameCharacters = 18;

/** Returns the threshold with which the picture opens, in percent. */
export function findThreshold(edges: readonly ShareEdge[], documents: number): number {
  const most = Math.max(fewestEdges, Math.floor(edgesPerDocument * documents));
  const shares = edges.map(([, , share]) => share).sort((a, b) => b - a);
  return shares.length <= most ? 0 : Math.min(100, Math.ceil(100 * shares[most]!));
}

/** Returns names without the folder that all of them have. */
export function shortenNames(names: readonly string[]): string[] {
  const folders = names.map((name) => name.slice(0, name.lastIndexOf("/") + 1));
  const all = folders.reduce((common, folder) => {
    let end = 0;
    while (end < common.length && common[end] === folder[end]) end += 1;
    return common.slice(0, common.lastIndexOf("/", end - 1) + 1);
  }, folders[0] ?? "");
  return names.map((name) => name.slice(all.length));
}

export function ClassOverview({ names, groups, edges, selected, onSelect }: ClassOverviewProps) {
  const say = useWording();
  const [percent, setPercent] = useState(() => findThreshold(edges, names.length));
  const shown = useMemo(() => visibleEdges(edges, percent / 100), [edges, percent]);
  return (
    <div class="grid">
      <Card title={say.text("passages.graph")}>
        <label class="field wide">
          {say.text("passages.graphFrom", { share: say.share(percent / 100) })}
          <input type="range" min="0" max="100" step="1" value={percent} onInput={(event) => setPercent(Number(event.currentTarget.value))} />
        </label>
        {shown.length < edges.length && <p class="note">{say.text("passages.graphHidden", { n: edges.length - shown.length, pairs: edges.length })}</p>}
        <ClassGraph names={names} groups={groups} edges={shown} selected={selected} onSelect={onSelect} />
      </Card>
      <Card title={say.text("passages.distribution")}>
        <ShareHistogram edges={edges} percent={percent} onPercent={setPercent} />
        <p class="muted">{say.text("passages.distributionNote")}{say.gap}{say.text("passages.distributionClick")}</p>
      </Card>
    </div>
  );
}

/** Height of a line of text in the picture, and the width of a letter, in pixels. */
const lineHeight = 13;
const letterWidth = 6.2;

/** Returns the members whose names are shown: those that overlap none before them, in the order of their importance. */
export function chooseLabels(members: readonly { member: number; label: string; x: number; y: number }[]): Set<number> {
  const boxes: (readonly [left: number, right: number, y: number])[] = [];
  const chosen = new Set<number>();
  for (const { member, label, x, y } of members) {
    const half = [...label].reduce((width, letter) => width + (letter > "\u2e80" ? 2 : 1) * letterWidth, 0) / 2;
    const isFree = boxes.every(([left, right, other]) => x + half < left || x - half > right || Math.abs(y - other) >= lineHeight);
    if (!isFree) continue;
    boxes.push([x - half, x + half, y]);
    chosen.add(member);
  }
  return chosen;
}

function ClassGraph({ names, groups: groupNumbers, edges, selected, onSelect }: ClassOverviewProps) {
  const say = useWording();
  const { box, width } = useWidth();
  const { groups, height } = useMemo(() => placeGroups(findGroups(names.length, edges), edges, width), [names.length, edges, width]);
  const members = groups.flatMap((group) => group.members.map((member, at) => [member, group.places[at]!] as const));
  const places = new Map(members);
  const labels = useMemo(() => shortenNames(names), [names]);
  const isNamed = members.length <= namedDocuments;
  const neighbours = new Set(edges.flatMap(([a, b]) => (a === selected ? [b] : b === selected ? [a] : [])));
  const shorten = (name: string) => {
    const characters = [...name];
    return characters.length <= nameCharacters ? name : `…${characters.slice(1 - nameCharacters).join("")}`;
  };
  const wanted = members.filter(([member]) => isNamed || member === selected || neighbours.has(member)).map(([member, [x, y]]) => ({ member, label: shorten(labels[member]!), x, y }));
  const rank = ({ member }: { member: number }) => (member === selected ? 0 : neighbours.has(member) ? 1 : 2);
  const named = chooseLabels(wanted.sort((a, b) => rank(a) - rank(b)));
  return (
    <div class="stack" ref={box}>
      {members.length === 0 ? (
        <p class="muted">{say.text("passages.graphEmpty")}</p>
      ) : (
        <svg class="chart graph" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={say.text("passages.graphLabel", { n: members.length, pairs: edges.length })}>
          {edges.map(([a, b, share]) => {
            const [from, to] = [places.get(a), places.get(b)];
            if (!from || !to) return null;
            const isNear = a === selected || b === selected;
            return (
              <line class={isNear ? "link near" : "link"} key={`${a}-${b}`} x1={from[0].toFixed(1)} y1={from[1].toFixed(1)} x2={to[0].toFixed(1)} y2={to[1].toFixed(1)} stroke-width={(1 + 4 * share).toFixed(2)}>
                <title>{`${names[a]} – ${names[b]}: ${say.share(share)}`}</title>
              </line>
            );
          })}
          {members.map(([member, [x, y]]) => (
            <g key={member}>
              <path class={`member ${markClass(groupNumbers[member] ?? -1)}${member === selected ? " selected" : ""}`} d={drawMark(groupNumbers[member] ?? -1, x, y, member === selected ? 8 : 6)} onClick={() => onSelect(member)}>
                <title>{names[member]}</title>
              </path>
              {named.has(member) && (
                <text class={member === selected ? "strong" : ""} x={Math.min(Math.max(x, 44), width - 44).toFixed(1)} y={(y - 11).toFixed(1)} text-anchor="middle">{shorten(labels[member]!)}</text>
              )}
            </g>
          ))}
        </svg>
      )}
      <p class="muted" role="status">
        {say.text("passages.graphNote", { n: members.length, pairs: edges.length, groups: groups.length })}
        {say.gap}{say.text("passages.graphSelected")}
        {names.length >= maxDocuments && <> {say.text("passages.graphMany", { n: maxDocuments })}</>}
      </p>
    </div>
  );
}

/** How many pairs share how much. */
function ShareHistogram({ edges, percent, onPercent }: { edges: readonly ShareEdge[]; percent: number; onPercent: (percent: number) => void }) {
  const say = useWording();
  const counts = Array.from({ length: 20 }, () => 0);
  for (const [, , share] of edges) counts[Math.min(19, Math.floor(20 * share))]! += 1;
  const bars = counts.map((value, at) => {
    const label = `${5 * at}–${5 * at + 5}\u00a0%`;
    return { start: at / 20, end: (at + 1) / 20, value, label, title: `${label}: ${say.text("passages.pairsCount", { n: value })}` };
  });
  const ticks = [0, 25, 50, 75, 100].map((tick): [number, string] => [tick / 100, `${tick}\u00a0%`]);
  return (
    <Histogram
      title={say.text("passages.distribution")}
      bars={bars}
      ticks={ticks}
      axis={say.text("passages.shareAxis")}
      values={say.text("passages.pairsAxis")}
      onBar={(bar) => onPercent(Math.round(100 * bar.start))}
      threshold={percent > 0 ? [percent / 100, `${percent}\u00a0%`] : undefined}
    />
  );
}
