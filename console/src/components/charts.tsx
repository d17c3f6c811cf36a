/** Charts as SVG: they follow the colours of the page, print sharply and can be read aloud. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useWording } from "./basics";

const height = 256;
const left = 52;
const right = 12;
const top = 40;
const bottom = 40;

/** Returns the width of an element in pixels, so that letters in a chart are as large as elsewhere. */
export function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setWidth(Math.max(220, Math.round(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { box, width, plotWidth: width - left - right };
}
const plotHeight = height - top - bottom;

export interface Bar {
  /** Place on the axis, from 0 to 1. */
  readonly start: number;
  readonly end: number;
  readonly value: number;
  /** What the bar is about, for example 0.80–0.81. */
  readonly label: string;
  readonly title: string;
}

interface HistogramProps {
  title: string;
  bars: readonly Bar[];
  ticks: readonly (readonly [number, string])[];
  axis: string;
  values: string;
  threshold?: readonly [number, string] | undefined;
  /** Called with a bar at a click. What it does can be done without a mouse elsewhere on the page. */
  onBar?: (bar: Bar) => void;
}

/** Bars over an axis. Heights grow with the square root where values differ by more than a hundred times. */
export function Histogram({ title, bars, ticks, axis, values, threshold, onBar }: HistogramProps) {
  const { count } = useWording();
  const { box, width, plotWidth } = useWidth();
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  const least = Math.min(...bars.filter((bar) => bar.value > 0).map((bar) => bar.value), most);
  const isRoot = most > 100 * least;
  const scale = (value: number) => (isRoot ? Math.sqrt(value / most) : value / most) * plotHeight;
  const x = (place: number) => left + place * plotWidth;
  const rules = niceRules(most, isRoot);
  return (
    <div ref={box}>
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={title}>
      {rules.map((value) => (
        <g key={value}>
          <line class="rule" x1={left} x2={width - right} y1={top + plotHeight - scale(value)} y2={top + plotHeight - scale(value)} />
          <text x={left - 6} y={top + plotHeight - scale(value) + 4} text-anchor="end">
            {count(value)}
          </text>
        </g>
      ))}
      {bars.map((bar) => {
        const tall = bar.value > 0 ? Math.max(1.5, scale(bar.value)) : 0;
        const wide = Math.max(1, (bar.end - bar.start) * plotWidth - 1);
        return (
          <rect class={onBar ? "bar clickable" : "bar"} key={bar.label} onClick={() => onBar?.(bar)} x={x(bar.start)} y={top + plotHeight - tall} width={wide} height={tall}>
            <title>{bar.title}</title>
          </rect>
        );
      })}
      <line class="axis" x1={left} x2={width - right} y1={top + plotHeight} y2={top + plotHeight} />
      {ticks.map(([place, label]) => (
        <text key={label} x={x(place)} y={top + plotHeight + 16} text-anchor={place > 0.97 ? "end" : "middle"}>
          {label}
        </text>
      ))}
      <text class="strong" x={width - right} y={height - 4} text-anchor="end">
        {axis}
      </text>
      <text class="strong" x={4} y={12}>
        {values}
      </text>
      {threshold && <Threshold at={x(threshold[0])} label={threshold[1]} isBefore={x(threshold[0]) > width - 130} />}
    </svg>
    </div>
  );
}

/** A line at the threshold, with its label above the chart. */
function Threshold({ at, label, isBefore }: { at: number; label: string; isBefore: boolean }) {
  return (
    <g>
      <line class="threshold" x1={at} x2={at} y1={top - 14} y2={top + plotHeight} />
      <text class="threshold-label" x={isBefore ? at - 5 : at + 5} y={top - 7} text-anchor={isBefore ? "end" : "start"}>
        {label}
      </text>
    </g>
  );
}

interface CurveProps {
  title: string;
  /** Values from 0 to 1 at equal distances from 0 to 1. */
  points: readonly number[];
  axis: string;
  values: string;
  threshold?: readonly [number, string] | undefined;
}

/** A curve from 0 to 1 over 0 to 1. */
export function Curve({ title, points, axis, values, threshold }: CurveProps) {
  const { share } = useWording();
  const { box, width, plotWidth } = useWidth();
  const x = (place: number) => left + place * plotWidth;
  const y = (value: number) => top + (1 - value) * plotHeight;
  const path = points.map((value, at) => `${at ? "L" : "M"}${x(at / (points.length - 1)).toFixed(1)} ${y(value).toFixed(1)}`);
  return (
    <div ref={box}>
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={title}>
      {[0, 0.25, 0.5, 0.75, 1].map((value) => (
        <g key={value}>
          <line class="rule" x1={left} x2={width - right} y1={y(value)} y2={y(value)} />
          <text x={left - 6} y={y(value) + 4} text-anchor="end">
            {share(value)}
          </text>
        </g>
      ))}
      <path class="curve" d={path.join(" ")} />
      <line class="axis" x1={left} x2={width - right} y1={y(0)} y2={y(0)} />
      {[0, 0.2, 0.4, 0.6, 0.8, 1].map((place) => (
        <text key={place} x={x(place)} y={y(0) + 16} text-anchor={place === 1 ? "end" : "middle"}>
          {place}
        </text>
      ))}
      <text class="strong" x={width - right} y={height - 4} text-anchor="end">
        {axis}
      </text>
      <text class="strong" x={4} y={12}>
        {values}
      </text>
      {threshold && <Threshold at={x(threshold[0])} label={threshold[1]} isBefore={x(threshold[0]) > width - 130} />}
    </svg>
    </div>
  );
}

/** Returns values at which rules are drawn. */
function niceRules(most: number, isRoot: boolean): number[] {
  if (!isRoot) return evenRules(most);
  const rules = [0.05, 0.25, 1].map((part) => {
    const value = most * part;
    const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
    const digit = value / power;
    return Math.max(1, power * Math.floor(digit));
  });
  return [...new Set(rules)];
}

/** Returns values at equal distances of 1, 2 or 5 times a power of ten, as far apart as two of them fit. */
export function evenRules(most: number): number[] {
  if (most < 2) return [1];
  const power = 10 ** Math.floor(Math.log10(most / 2));
  const step = [5, 2, 1].map((digit) => digit * power).find((it) => 2 * it <= most) ?? power;
  return Array.from({ length: Math.floor(most / step) }, (_, at) => (at + 1) * step);
}

export interface Line {
  readonly name: string;
  /** Name of its style. */
  readonly kind: string;
  readonly points: readonly { readonly x: number; readonly y: number; readonly low: number; readonly high: number }[];
}

interface LinesProps {
  title: string;
  lines: readonly Line[];
  ticks: readonly (readonly [number, string])[];
  axis: string;
  marker?: readonly [number, string] | undefined;
}

/** Lines from 0 to 1 over 0 to 1 with their intervals, told apart by colour and by dashes. */
export function Lines({ title, lines, ticks, axis, marker }: LinesProps) {
  const { share } = useWording();
  const { box, width, plotWidth } = useWidth();
  const x = (place: number) => left + place * plotWidth;
  const y = (value: number) => top + (1 - value) * plotHeight;
  const place = (px: number, py: number) => `${x(px).toFixed(1)} ${y(py).toFixed(1)}`;
  return (
    <div ref={box} class="stack">
      <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={title}>
        {[0, 0.25, 0.5, 0.75, 1].map((value) => (
          <g key={value}>
            <line class="rule" x1={left} x2={width - right} y1={y(value)} y2={y(value)} />
            <text x={left - 6} y={y(value) + 4} text-anchor="end">
              {share(value)}
            </text>
          </g>
        ))}
        {lines.map((line) => {
          const there = line.points.map((it) => place(it.x, it.high));
          const back = [...line.points].reverse().map((it) => place(it.x, it.low));
          return <path class={`area ${line.kind}`} d={`M${[...there, ...back].join(" L")} Z`} key={line.kind} />;
        })}
        {lines.map((line) => (
          <path class={`curve ${line.kind}`} d={`M${line.points.map((it) => place(it.x, it.y)).join(" L")}`} key={line.kind} />
        ))}
        <line class="axis" x1={left} x2={width - right} y1={y(0)} y2={y(0)} />
        {ticks.map(([at, label]) => (
          <text key={label} x={x(at)} y={y(0) + 16} text-anchor={at === 1 ? "end" : "middle"}>
            {label}
          </text>
        ))}
        <text class="strong" x={width - right} y={height - 4} text-anchor="end">
          {axis}
        </text>
        {marker && <Threshold at={x(marker[0])} label={marker[1]} isBefore={x(marker[0]) > width - 130} />}
      </svg>
      <ul class="legend">
        {lines.map((line) => (
          <li key={line.kind}>
            <svg class="chart key" viewBox="0 0 36 12" aria-hidden="true">
              <line class={`curve ${line.kind}`} x1="0" x2="36" y1="6" y2="6" />
            </svg>
            <span>{line.name}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
