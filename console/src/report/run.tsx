/** How the run was made: inputs, settings, the plan with its curve, audit and times. */
import { Card, Facts, Name, useWording } from "../components/basics";
import { Curve } from "../components/charts";
import type { MessageKey } from "../language/catalog";
import type { Report, Share } from "./data";

export function Run({ report }: { report: Report }) {
  const say = useWording();
  const { inputs, input_count: inputCount, written, plan, summary } = report.data;
  const days = plan.window_seconds === null ? null : plan.window_seconds / 86_400;
  const states: [number, MessageKey][] = [
    [summary.states?.too_short ?? 0, "run.tooShort"],
    [summary.states?.symbols_only ?? 0, "run.symbolsOnly"],
    [summary.states?.empty ?? 0, "run.empty"],
  ];
  const found = states.filter(([count]) => count > 0);
  return (
    <div class="grid">
      <Card title={say.text("run.inputs")}>
        <table>
          <tbody>
            {inputs.map((input) => (
              <tr key={input.name}>
                <td>
                  <Name text={input.name} /> {input.reference && <span class="muted">({say.text("run.referenceInput")})</span>}
                </td>
                <td class="number">{input.bytes === null ? "" : say.bytes(input.bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {inputCount > inputs.length && <p class="muted">{say.text("run.moreInputs", { n: inputCount - inputs.length })}</p>}
        {written.length > 0 && (
          <>
            <h3>{say.text("run.outputs")}</h3>
            <Facts rows={written.map(([role, path]) => [say.known(`output.${role}`, role), <Name text={path} />] as const)} />
          </>
        )}
      </Card>
      <Card title={say.text("run.settings")}>
        <Facts
          rows={[
            [say.text("run.method"), say.known(`method.${plan.method}`, plan.method)],
            [say.text("run.measure"), say.known(`measure.${plan.measure}`, plan.measure)],
            [say.text("run.threshold"), `≥ ${plan.threshold}`],
            [say.text("run.candidateThreshold"), plan.candidate_threshold === null ? "" : `≥ ${plan.candidate_threshold}`],
            [say.text("run.distance"), plan.distance === null ? "" : `≤ ${plan.distance}`],
            [
              say.text("run.bands"),
              plan.bands === null || plan.rows === null ? "" : say.text("run.bandsValue", { bands: plan.bands, rows: plan.rows }),
            ],
            [say.text("run.joined"), plan.joined_features === null ? "" : say.text("run.joinedValue", { n: plan.joined_features })],
            [say.text("run.keep"), report.data.kind === "dedup" ? say.known(`keep.${plan.keep}`, plan.keep) : ""],
            [say.text("run.within"), plan.within],
            [
              say.text("run.window"),
              days === null ? "" : days >= 1 ? say.text("unit.days", { n: String(days) }) : say.text("unit.seconds", { n: String(plan.window_seconds) }),
            ],
            [say.text("run.recipe"), <><Name text={plan.recipe} /> <code>{plan.recipe_id}</code></>],
          ]}
        />
        <details>
          <summary>{say.text("run.recipeText")}</summary>
          <pre tabIndex={0}>{plan.recipe_toml}</pre>
        </details>
      </Card>
      {plan.curve.length > 0 && <PlanCurve report={report} />}
      <AuditCard report={report} />
      <Card title={say.text("run.timings")}>
        <Facts
          rows={[
            ...(summary.stages ?? []).map(
              ([stage, seconds]) =>
                [
                  say.known(`run.stage.${stage}`, stage),
                  <span class="number">{say.text("unit.seconds", { n: say.decimal(seconds, 2) })}</span>,
                ] as const,
            ),
            [say.text("run.total"), <span class="number">{say.text("unit.seconds", { n: say.decimal(summary.seconds, 2) })}</span>],
          ]}
        />
        {found.length > 0 && (
          <>
            <h3>{say.text("run.states")}</h3>
            <Facts rows={found.map(([count, key]) => [say.count(count), say.text(key)] as const)} />
          </>
        )}
      </Card>
    </div>
  );
}

function PlanCurve({ report }: { report: Report }) {
  const say = useWording();
  const { plan } = report.data;
  const bound = plan.candidate_threshold ?? plan.threshold;
  const probability = plan.recall_at_threshold ?? 1;
  const title = say.text("run.curve");
  return (
    <Card title={title}>
      <Curve
        title={title}
        points={plan.curve}
        axis="Jaccard"
        values={say.text("run.probability")}
        threshold={[bound, say.text("similarity.threshold", { threshold: String(bound) })]}
      />
      <p class="muted">{say.text("run.curveNote", { threshold: String(bound), probability: say.share(probability) })}</p>
    </Card>
  );
}

function AuditCard({ report }: { report: Report }) {
  const say = useWording();
  const { audit } = report.data.summary;
  if (!audit) {
    return (
      <Card title={say.text("run.audit")}>
        <p class="muted">{say.text("run.noAudit")}</p>
      </Card>
    );
  }
  const rows: [MessageKey, Share | undefined][] = [
    ["run.recall", audit.recall],
    ["run.precision", audit.precision],
    ["run.left", audit.left_together],
  ];
  return (
    <Card title={say.text("run.audit")}>
      <p class="muted">{say.text("run.auditNote", { n: audit.sampled })}</p>
      <table>
        <tbody>
          {rows.map(([key, share]) =>
            share && share.share !== null ? (
              <tr key={key}>
                <td>{say.text(key)}</td>
                <td class="number">
                  {say.text("run.interval", { share: say.share(share.share), low: say.share(share.low), high: say.share(share.high) })}
                </td>
              </tr>
            ) : null,
          )}
        </tbody>
      </table>
    </Card>
  );
}
