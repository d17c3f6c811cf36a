/**
 * How a cluster hangs together: the kept document in the middle, and each member as far from it as it is dissimilar.
 *
 * Members stand on a ring in the order of their arrival, or on an axis of time. Up to 1,000 members are drawn, each with
 * a line to the kept document; of more than 100, only the 100 least similar ones have a line, because they are what a
 * person looks for. Lines between members are drawn where their similarity is known.
 */
import { useState } from "preact/hooks";
import { useWording } from "./basics";
import { useWidth } from "./charts";

export interface GraphMember {
  id: string;
  /** Similarity to the kept document. */
  similarity: number;
  /** Place in the order of arrival, from 0 to 1. */
  place: number;
}

/** Two members by their numbers, and their similarity. */
export type GraphEdge = readonly [number, number, number];

/** Members that are drawn. */
export const maxDrawn = 1000;

/** Members that have a line to the kept document. */
export const maxLines = 100;

type Layout = "ring" | "time";
type Place = readonly [x: number, y: number];

/** Size of the picture in pixels, and the least similarity on its scale. */
interface Scale {
  width: number;
  height: number;
  floor: number;
}

/** Returns the least similarity on the scale: a tenth at or below the threshold and all members. */
export const findFloor = (members: readonly GraphMember[], threshold: number): number =>
  Math.max(0, Math.floor(10 * Math.min(threshold, ...members.map((it) => it.similarity)) - 1e-9) / 10);

/** Returns the members that have a line: all, or of many the least similar ones. */
export function chooseLines(members: readonly GraphMember[]): Set<number> {
  const all = members.map((_, at) => at);
  if (members.length <= maxLines) return new Set(all);
  return new Set(all.sort((a, b) => members[a]!.similarity - members[b]!.similarity || a - b).slice(0, maxLines));
}

const left = 56;
const bottom = 36;
/** Distance of a member as similar as can be from the kept document. */
const inner = 34;

/** Returns how far a similarity is from 1, as a part of the scale. */
const findDepth = (similarity: number, floor: number) => (1 - similarity) / (1 - floor || 1);

const findRadius = (similarity: number, { height, floor }: Scale) => inner + findDepth(similarity, floor) * (height / 2 - inner - 18);

function placeOnRing(member: GraphMember, at: number, count: number, scale: Scale): Place {
  const radius = findRadius(member.similarity, scale);
  const angle = (2 * Math.PI * at) / count - Math.PI / 2;
  return [scale.width / 2 + radius * Math.cos(angle), scale.height / 2 + radius * Math.sin(angle)];
}

const findHeight = (similarity: number, { height, floor }: Scale) => 28 + findDepth(similarity, floor) * (height - bottom - 28);

const placeInTime = (member: GraphMember, scale: Scale): Place => [left + 40 + member.place * (scale.width - left - 64), findHeight(member.similarity, scale)];

interface ClusterGraphProps {
  kept: string;
  /** In the order of their arrival. */
  members: readonly GraphMember[];
  edges: readonly GraphEdge[];
  threshold: number;
  selected: number;
  onSelect: (at: number) => void;
}

export function ClusterGraph({ kept, members, edges, threshold, selected, onSelect }: ClusterGraphProps) {
  const say = useWording();
  const [layout, setLayout] = useState<Layout>("ring");
  const { box, width } = useWidth();
  const floor = findFloor(members, threshold);
  const scale: Scale = { width, height: Math.min(380, Math.max(240, width)), floor };
  const lines = chooseLines(members);
  const isRing = layout === "ring";
  const center: Place = isRing ? [width / 2, scale.height / 2] : [left + 10, findHeight(1, scale)];
  const places = members.map((it, at) => (isRing ? placeOnRing(it, at, members.length, scale) : placeInTime(it, scale)));
  const least = Math.min(1, ...members.map((it) => it.similarity));
  const label = say.text("graph.label", { kept, n: members.length, least: say.similarity(least) });
  const size = members.length > 300 ? 2.5 : members.length > 60 ? 4 : 6;
  const showLine = (from: Place, to: Place, similarity: number, key: string) => (
    <line
      key={key}
      class={similarity >= threshold ? "link" : "link far"}
      x1={from[0].toFixed(1)}
      y1={from[1].toFixed(1)}
      x2={to[0].toFixed(1)}
      y2={to[1].toFixed(1)}
      stroke-width={(0.75 + 2 * Math.max(0, 1 - findDepth(similarity, floor))).toFixed(2)}
    />
  );
  return (
    <div class="stack" ref={box}>
      <div class="line" role="group" aria-label={say.text("graph.title")}>
        {(["ring", "time"] as const).map((it) => (
          <button type="button" class="button" aria-pressed={layout === it} key={it} onClick={() => setLayout(it)}>{say.text(`graph.${it}`)}</button>
        ))}
      </div>
      <svg class="chart graph" viewBox={`0 0 ${width} ${scale.height}`} role="img" aria-label={label}>
        {isRing ? <RingScale scale={scale} threshold={threshold} /> : <TimeScale scale={scale} threshold={threshold} />}
        {edges.map(([a, b, similarity]) => places[a] && places[b] && showLine(places[a], places[b], similarity, `${a}-${b}`))}
        {members.map((it, at) => lines.has(at) && showLine(center, places[at]!, it.similarity, `${at}`))}
        {members.map((it, at) => (
          <circle
            class={at === selected ? "member selected" : "member"}
            key={it.id}
            cx={places[at]![0].toFixed(1)}
            cy={places[at]![1].toFixed(1)}
            r={at === selected ? size + 2.5 : size}
            onClick={() => onSelect(at)}
          >
            <title>{`${it.id}: ${say.similarity(it.similarity)}`}</title>
          </circle>
        ))}
        <rect class="kept" x={center[0] - 8} y={center[1] - 8} width="16" height="16" rx="3">
          <title>{kept}</title>
        </rect>
      </svg>
      <p class="muted">
        {say.text(isRing ? "graph.ringNote" : "graph.timeNote")}
        {members.length > maxLines && <> {say.text("graph.manyNote", { lines: maxLines, n: members.length })}</>}
        {edges.length > 0 && <> {say.text("graph.edgeNote")}</>}
      </p>
    </div>
  );
}

function RingScale({ scale, threshold }: { scale: Scale; threshold: number }) {
  const say = useWording();
  const { width, height, floor } = scale;
  const ring = (kind: string, similarity: number) => <circle class={kind} cx={width / 2} cy={height / 2} r={findRadius(similarity, scale).toFixed(1)} />;
  return (
    <>
      {ring("rule", floor)}
      <text x={width / 2 + 4} y={height - 5}>{floor}</text>
      {ring("threshold", threshold)}
      <text class="threshold-label" x="4" y="14">{`┄ ${say.text("similarity.threshold", { threshold: String(threshold) })}`}</text>
      <text x={width / 2 + 12} y={height / 2 - inner + 14}>1</text>
    </>
  );
}

function TimeScale({ scale, threshold }: { scale: Scale; threshold: number }) {
  const say = useWording();
  const { width, height, floor } = scale;
  const rule = (kind: string, similarity: number) => (
    <line class={kind} x1={left} x2={width - 12} y1={findHeight(similarity, scale)} y2={findHeight(similarity, scale)} />
  );
  return (
    <>
      {[floor, (floor + 1) / 2, 1].map((value) => (
        <g key={value}>
          {rule("rule", value)}
          <text x={left - 8} y={findHeight(value, scale) + 4} text-anchor="end">{Number(value.toFixed(2))}</text>
        </g>
      ))}
      {rule("threshold", threshold)}
      <text class="strong" x="4" y="12">{say.text("similarity.axis")}</text>
      <text class="strong" x={width - 12} y={height - 8} text-anchor="end">{say.text("graph.arrival")}</text>
      <text class="threshold-label" x={width - 12} y="12" text-anchor="end">{`┄ ${say.text("similarity.threshold", { threshold: String(threshold) })}`}</text>
    </>
  );
}
