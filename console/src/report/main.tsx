/** A page that reads its data from itself and opens no connection: the report of a run, of passages, of benchmarks or of an evaluation, or a comparison. */
import { render, type ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import "../design/design.css";
import { WordingContext } from "../components/basics";
import { ComparePage, readComparison } from "../compare/page";
import { ContaminationPage, readContamination } from "../contamination/page";
import { EvalPage, readEvaluation } from "../eval/page";
import { PassagesPage, readPassages } from "../passages/page";
import { Wording, type Language, type MessageKey } from "../language/catalog";
import { readReport } from "./data";
import { ReportPage } from "./report-page";

/** What every kind of data begins with. */
interface DataHead {
  format: string;
  version: number;
  kind: string;
  language?: Language;
}

/** Reads the data of this page. Returns null if it is none that this page can show. */
function readData(json: string): DataHead | null {
  try {
    const data = JSON.parse(json) as DataHead;
    return data.format === "lookalike-report" && data.version === 1 ? data : null;
  } catch {
    return null;
  }
}

const firstLanguage = (data: DataHead | null): Language =>
  data?.language ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

/** Returns the content of the page and the message that names it. */
function findContent(data: DataHead, source: string, onLanguage: () => void): [ComponentChildren, MessageKey] | null {
  const report = readReport(data);
  if (report) return [<ReportPage report={report} onLanguage={onLanguage} />, "app.report"];
  const comparison = readComparison(data);
  if (comparison) return [<ComparePage data={comparison} onLanguage={onLanguage} />, "compare.title"];
  const evaluation = readEvaluation(data);
  if (evaluation) return [<EvalPage data={evaluation} onLanguage={onLanguage} />, "eval.title"];
  const passages = readPassages(data);
  if (passages) return [<PassagesPage data={passages} page={source} onLanguage={onLanguage} />, "passages.title"];
  const contamination = readContamination(data);
  if (contamination) return [<ContaminationPage data={contamination} onLanguage={onLanguage} />, "contamination.title"];
  return null;
}

function App({ data, source }: { data: DataHead | null; source: string }) {
  const [language, setLanguage] = useState<Language>(() => firstLanguage(data));
  const wording = useMemo(() => new Wording(language, data?.kind), [language]);
  const content = useMemo(() => (data ? findContent(data, source, () => setLanguage((it) => (it === "zh" ? "en" : "zh"))) : null), [data]);
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
    document.title = `lookalike · ${wording.text(content?.[1] ?? "app.report")}`;
  }, [wording]);
  return (
    <WordingContext.Provider value={wording}>
      {content?.[0] ?? <main class="main"><p class="note">{wording.text("app.damaged")}</p></main>}
    </WordingContext.Provider>
  );
}

const page = document.getElementById("page");
const holder = document.getElementById("data");
if (page && holder) {
  const data = readData(holder.textContent ?? "");
  // The page as it lies in the file, without its data: copies of the report have other data in it.
  holder.textContent = "";
  const source = `<!doctype html>\n${document.documentElement.outerHTML}\n`;
  holder.remove();
  page.textContent = "";
  render(<App data={data} source={source} />, page);
}
