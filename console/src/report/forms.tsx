/** The forms: frames that many documents share, and what each document has in the slots. */
import { Name, ShortName, Visible, useWording } from "../components/basics";
import { useListState } from "../components/list-state";
import { MarkButtons, MarkLabel } from "../components/mark-buttons";
import type { Mark } from "../components/review-keys";
import { ListEntry, SearchedList } from "../components/searched-list";
import type { Report } from "./data";
import type { Marks } from "./marks";
import { fold, type Query } from "./query";

type Order = "largest" | "smallest" | "input";

/** Returns the rows of forms that a query finds: in their names, frames, and the ids and values of their documents. */
export function findForms(report: Report, query: Query, marks: Marks): number[] {
  const { forms, form_documents: documents, sources } = report.data;
  const hasMark = (form: number, wanted: string) => {
    const mark = marks.get(form);
    return wanted === "yes" ? mark !== undefined : wanted === "no" ? mark === undefined : mark === wanted;
  };
  const sourcesOf = (form: number) => fold(report.documentsOfForm(form).map((row) => sources[documents.source[row]!] ?? "").join("\n"));
  const textOf = (form: number) => {
    const values = report.documentsOfForm(form).flatMap((row) => documents.values[row]!);
    return fold([...forms.frame[form]!, ...values].join("\n"));
  };
  const namesOf = (form: number) => fold([forms.name[form]!, ...report.documentsOfForm(form).map((row) => documents.id[row]!)].join("\n"));
  return forms.name
    .map((_, form) => form)
    .filter(
      (form) =>
        query.cluster.every((test) => test(forms.documents[form]!)) &&
        query.marked.every((wanted) => hasMark(form, wanted)) &&
        query.source.every((part) => sourcesOf(form).includes(part)) &&
        query.id.every((part) => namesOf(form).includes(part)) &&
        query.text.every((part) => textOf(form).includes(part)) &&
        query.words.every((part) => namesOf(form).includes(part) || textOf(form).includes(part)),
    );
}

interface FormsProps {
  report: Report;
  marks: Marks;
  onMark: (form: number, mark: Mark | null) => void;
}

export function Forms({ report, marks, onMark }: FormsProps) {
  const say = useWording();
  const { forms } = report.data;
  const listed = forms.possible.filter((possible) => !possible).length;
  const { controls, rows, row: form } = useListState<number, Order>({
    orders: ["largest", "smallest", "input"],
    inputs: [report],
    subject: report,
    find: (query, order) => {
      const found = query ? findForms(report, query, query.marked.length > 0 ? marks : new Map()) : forms.name.map((_, at) => at);
      const sign = order === "largest" ? -1 : order === "smallest" ? 1 : 0;
      return found.sort((a, b) => sign * (forms.documents[a]! - forms.documents[b]!) || a - b);
    },
    mark: onMark,
  });
  return (
    <div class="split">
      <div class="side">
        {listed < forms.total && <p class="note">{say.text("forms.sample", { listed, total: forms.total })}</p>}
        <SearchedList
          id="forms"
          label={say.text("section.forms")}
          controls={controls}
          hint="list.searchHint"
          help="forms.searchHelp"
          empty={say.text("list.empty")}
          render={(entry) => {
            const row = rows[entry]!;
            return (
              <ListEntry
                name={<ShortName text={forms.frame[row]!.join(" … ")} />}
                value={say.count(forms.documents[row]!)}
                more={say.text(forms.possible[row] ? "forms.possible" : "forms.used")}
                mark={<MarkLabel mark={marks.get(row)} about="form" />}
              />
            );
          }}
        />
      </div>
      {form === undefined ? (
        <p class="card muted">{say.text("pair.select")}</p>
      ) : (
        <FormView key={form} report={report} form={form} mark={marks.get(form)} onMark={(mark) => onMark(form, mark)} />
      )}
    </div>
  );
}

/** The frame of a form, with its slots by their numbers. */
function Frame({ parts }: { parts: readonly string[] }) {
  return (
    <p class="frame">
      {parts.map((part, at) => (
        <>
          {at > 0 && <b class="slot">[{at}]</b>} <Visible text={part} />{" "}
        </>
      ))}
    </p>
  );
}

interface FormViewProps {
  report: Report;
  form: number;
  mark: Mark | undefined;
  onMark: (mark: Mark | null) => void;
}

function FormView({ report, form, mark, onMark }: FormViewProps) {
  const say = useWording();
  const { forms } = report.data;
  const [count, removed] = [forms.documents[form]!, forms.removed[form]];
  return (
    <section class="card stack">
      <h2>
        <Name text={forms.name[form]!} />
        <span class="muted">
          {" "}· {say.text("forms.documents", { n: count })}
          {report.data.kind === "dedup" && removed !== null && removed !== undefined && <> · {say.text("forms.removed", { n: removed })}</>}
        </span>
      </h2>
      <p>{say.text(forms.possible[form] ? "forms.possibleMeans" : "forms.usedMeans")}</p>
      {report.canMarkForm(form) && <MarkButtons mark={mark} onMark={onMark} about="form" />}
      <h3>{say.text("forms.frame")}</h3>
      <Frame parts={forms.frame[form]!} />
      <Values report={report} form={form} />
    </section>
  );
}

/** The documents of a form, with the value of each slot. */
function Values({ report, form }: { report: Report; form: number }) {
  const say = useWording();
  const { kind, forms, form_documents: documents, sources } = report.data;
  const rows = report.documentsOfForm(form);
  const slots = forms.frame[form]!.slice(1);
  return (
    <>
      <h3>
        {say.text("forms.values")}
        {rows.length < forms.documents[form]! && (
          <span class="muted"> · {say.text("cluster.listed", { listed: rows.length, total: forms.documents[form]! })}</span>
        )}
      </h3>
      <div class="wide-table" tabIndex={0} role="region" aria-label={say.text("forms.values")}>
        <table>
          <thead>
            <tr>
              <th>{say.text("forms.document")}</th>
              {slots.map((_, at) => <th key={at}>[{at + 1}]</th>)}
              {kind === "dedup" && <th>{say.text("forms.verdict")}</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row}>
                <td title={say.text("pair.row", { source: sources[documents.source[row]!] ?? "", row: documents.row[row]! })}>
                  <Name text={documents.id[row]!} />
                </td>
                {documents.values[row]!.map((value, at) => <td key={at}><Name text={value} /></td>)}
                {kind === "dedup" && <td>{say.text(documents.removed[row] ? "pair.removed" : "pair.kept")}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
