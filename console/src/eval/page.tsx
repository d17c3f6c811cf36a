/** Precision and recall over every threshold, for each measured setting. */
import { useState } from "preact/hooks";
import { Card, Facts, Name, Phrase, Stat, useWording } from "../components/basics";
import { Lines, type Line } from "../components/charts";
import { Shell, useFooter } from "../components/shell";

interface Figure {
  value: number;
  interval: { low: number; high: number } | null;
}

interface Metrics {
  counts: { true_positives: number; false_positives: number; false_negatives: number; true_negatives: number };
  precision: Figure | null;
  recall: Figure | null;
  f1: Figure | null;
}

interface Point {
  cut: number;
  measure: Metrics;
  method: Metrics;
}

interface Setting {
  sweep: "threshold" | "distance" | "nothing";
  points: Point[];
  best: number | null;
  breakdown: { by: string; classes: { name: string; metrics: Metrics }[] }[];
}

export interface EvalData {
  kind: "eval";
  program: string;
  created: string;
  evaluation: {
    labelled: { texts: number; similar: number; different: number; ungraded: number; units: number };
    settings: Setting[];
    resamples: number;
    confidence: number;
  };
  names: string[];
  inputs: string[];
}

export const readEvaluation = (data: { kind: string }): EvalData | null => (data.kind === "eval" ? (data as EvalData) : null);

const figures = ["precision", "recall", "f1"] as const;

export function EvalPage({ data, onLanguage }: { data: EvalData; onLanguage: () => void }) {
  const say = useWording();
  const { labelled, settings, resamples, confidence } = data.evaluation;
  const footer = useFooter(data.created, data.program);
  return (
    <Shell title={say.text("eval.title")} onLanguage={onLanguage} footer={footer}>
      <div class="stats">
        <Stat value={say.count(labelled.texts)} label={say.text("eval.texts")} />
        <Stat value={say.count(labelled.similar)} label={say.text("eval.similar")} />
        <Stat
          value={say.count(labelled.different)}
          label={say.text("eval.different")}
          more={labelled.ungraded > 0 ? say.text("eval.ungraded", { n: labelled.ungraded }) : undefined}
        />
      </div>
      <Card title={say.text("eval.best")}>
        <Ranking data={data} />
        <p class="muted">
          {resamples > 0 ? say.text("eval.intervals", { share: say.share(confidence), n: resamples }) : say.text("eval.noIntervals")}{" "}
          {data.inputs.map((input) => <Name text={input} key={input} />)}
        </p>
      </Card>
      {settings.map((setting, at) => (
        <SettingCard setting={setting} name={data.names[at] ?? ""} key={at} />
      ))}
    </Shell>
  );
}

const cutOf = (setting: Setting, point: Point) => (setting.sweep === "nothing" ? "–" : `${setting.sweep === "distance" ? "≤" : "≥"} ${point.cut}`);

function useFigure() {
  const say = useWording();
  return (figure: Figure | null) => {
    if (!figure) return "–";
    const value = figure.value.toFixed(3);
    return figure.interval ? say.text("run.interval", { share: value, low: figure.interval.low.toFixed(3), high: figure.interval.high.toFixed(3) }) : value;
  };
}

/** The best point of every setting, the highest F1 first. */
function Ranking({ data }: { data: EvalData }) {
  const say = useWording();
  const write = useFigure();
  const rows = data.evaluation.settings
    .flatMap((setting, at) => {
      const point = setting.best === null ? undefined : setting.points[setting.best];
      return point ? [{ setting, point, name: data.names[at] ?? "" }] : [];
    })
    .sort((a, b) => (b.point.method.f1?.value ?? 0) - (a.point.method.f1?.value ?? 0));
  return (
    <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("eval.best")}>
      <table class="labelled">
        <thead>
          <tr>
            <th>{say.text("eval.setting")}</th><th class="number">{say.text("eval.cut")}</th>
            {figures.map((figure) => <th class="number" key={figure}>{say.text(`eval.${figure}`)}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ setting, point, name }) => (
            <tr key={name}>
              <td><Name text={name} /></td>
              <td class="number" data-label={say.text("eval.cut")}>{cutOf(setting, point)}</td>
              {figures.map((figure) => <td class="number" key={figure} data-label={say.text(`eval.${figure}`)}>{write(point.method[figure])}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SettingCard({ setting, name }: { setting: Setting; name: string }) {
  const say = useWording();
  const write = useFigure();
  const [shown, setShown] = useState(setting.best ?? 0);
  const { points } = setting;
  const point = points[shown];
  const most = Math.max(...points.map((it) => it.cut), 1);
  const lines: Line[] = figures.map((figure) => ({
    name: say.text(`eval.${figure}`),
    kind: figure,
    points: points.flatMap((it) => {
      const value = it.method[figure];
      return value ? [{ x: it.cut / most, y: value.value, low: value.interval?.low ?? value.value, high: value.interval?.high ?? value.value }] : [];
    }),
  }));
  const ticks = [0, 0.2, 0.4, 0.6, 0.8, 1].map((at): [number, string] => [at, String(Math.round(at * most * 100) / 100)]);
  const axis = say.text(setting.sweep === "distance" ? "run.distance" : "run.threshold");
  return (
    <Card title={name}>
      {points.length > 1 && (
        <Lines
          title={name}
          lines={lines}
          ticks={ticks}
          axis={axis}
          marker={setting.best === null ? undefined : [points[setting.best]!.cut / most, say.text("eval.bestMark", { cut: String(points[setting.best]!.cut) })]}
        />
      )}
      {point && (
        <>
          {points.length > 1 && (
            <label class="field">
              {axis}
              <select value={shown} onChange={(event) => setShown(Number(event.currentTarget.value))}>
                {points.map((it, at) => <option value={at} key={at}>{cutOf(setting, it)}</option>)}
              </select>
            </label>
          )}
          <Facts
            rows={[
              ...figures.map((figure) => [say.text(`eval.${figure}`), <span class="number">{write(point.method[figure])}</span>] as const),
              [say.text("eval.found"), say.count(point.method.counts.true_positives)],
              [say.text("eval.wrong"), say.count(point.method.counts.false_positives)],
              [say.text("eval.missed"), say.count(point.method.counts.false_negatives)],
              [say.text("eval.lost"), say.count(Math.max(0, point.method.counts.false_negatives - point.measure.counts.false_negatives))],
            ]}
          />
        </>
      )}
      {setting.breakdown.length > 0 && (
        <details>
          <summary>{say.text("eval.breakdown")}</summary>
          <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("eval.breakdown")}>
            <table class="labelled">
              <thead>
                <tr>
                  <th>{say.text("eval.by")}</th><th>{say.text("eval.class")}</th>
                  {figures.map((figure) => <th class="number" key={figure}>{say.text(`eval.${figure}`)}</th>)}
                </tr>
              </thead>
              <tbody>
                {setting.breakdown.flatMap((part) =>
                  part.classes.map((it) => (
                    <tr key={part.by + it.name}>
                      <td class="muted">{say.known(`eval.by.${part.by}`, part.by)}</td>
                      <td><Phrase text={it.name} /></td>
                      {figures.map((figure) => <td class="number" key={figure} data-label={say.text(`eval.${figure}`)}>{write(it.metrics[figure])}</td>)}
                    </tr>
                  )),
                )}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </Card>
  );
}
