/** A page that reads its data from itself and opens no connection: the report of a run, a comparison, or an evaluation. */
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import "../design/design.css";
import { WordingContext } from "../components/basics";
import { ComparePage, readComparison } from "../compare/page";
import { EvalPage, readEvaluation } from "../eval/page";
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

function App({ data }: { data: DataHead | null }) {
  const [language, setLanguage] = useState<Language>(() => firstLanguage(data));
  const wording = useMemo(() => new Wording(language, data?.kind), [language]);
  const report = useMemo(() => (data ? readReport(data) : null), [data]);
  const comparison = useMemo(() => (data ? readComparison(data) : null), [data]);
  const evaluation = useMemo(() => (data ? readEvaluation(data) : null), [data]);
  useEffect(() => {
    const title: MessageKey = comparison ? "compare.title" : evaluation ? "eval.title" : "app.report";
    document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
    document.title = `lookalike · ${wording.text(title)}`;
  }, [wording]);
  const onLanguage = () => setLanguage(language === "zh" ? "en" : "zh");
  return (
    <WordingContext.Provider value={wording}>
      {report && <ReportPage report={report} onLanguage={onLanguage} />}
      {comparison && <ComparePage data={comparison} onLanguage={onLanguage} />}
      {evaluation && <EvalPage data={evaluation} onLanguage={onLanguage} />}
      {!report && !comparison && !evaluation && <main class="main"><p class="note">{wording.text("app.damaged")}</p></main>}
    </WordingContext.Provider>
  );
}

const page = document.getElementById("page");
const holder = document.getElementById("data");
if (page && holder) {
  const data = readData(holder.textContent ?? "");
  holder.remove();
  page.textContent = "";
  render(<App data={data} />, page);
}
