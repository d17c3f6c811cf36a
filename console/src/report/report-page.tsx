/** The report of a run that found matches. */
import { reviewKeys } from "../components/key-help";
import { Shell, useFooter } from "../components/shell";
import { useWording } from "../components/basics";
import { decisionFile, saveFile } from "../components/save-file";
import type { MessageKey } from "../language/catalog";
import { allSections, useView, type Section, type View } from "./address";
import { Clusters } from "./clusters";
import { Forms } from "./forms";
import type { Report } from "./data";
import { useMarks, writeDecisions } from "./marks";
import { Overview } from "./overview";
import { Review } from "./review";
import { Run } from "./run";

export function ReportPage({ report, onLanguage }: { report: Report; onLanguage: () => void }) {
  const say = useWording();
  const { data } = report;
  const { marks, setMark, formMarks, setFormMark, clearMarks } = useMarks(report);
  const markCount = marks.size + formMarks.size;
  const footer = useFooter(data.created, data.program);
  const isShown = (section: Section) => (section === "clusters" ? data.kind === "dedup" : section !== "forms" || data.forms.name.length > 0);
  const sections = allSections.filter(isShown);
  const [view, setView] = useView(sections);
  const open = (next: View) => {
    setView(next);
    window.scrollTo(0, 0);
  };
  const clear = () => {
    if (confirm(say.text("marks.clearAsk", { n: markCount }))) clearMarks();
  };
  const notice = markCount > 0 && (
    <div class="card line" role="region" aria-label={say.text("marks.save")}>
      <strong>{say.text("marks.count", { n: markCount })}</strong>
      <button
        type="button"
        class="button strong"
        title={say.text("marks.saveTitle")}
        onClick={() => saveFile(decisionFile, writeDecisions(report, marks, formMarks))}
      >
        {say.text("marks.save")}
      </button>
      <button type="button" class="button" onClick={clear}>{say.text("marks.clear")}</button>
      <span class="muted">{say.text("marks.after", { file: decisionFile })}</span>
    </div>
  );
  return (
    <Shell
      title={say.text("app.report")}
      sections={sections.map((section) => [section, say.text(`section.${section}` as MessageKey)] as const)}
      section={view.section}
      onSection={(section) => open({ section: section as Section })}
      onLanguage={onLanguage}
      notice={notice}
      footer={footer}
      keys={reviewKeys}
    >
      {view.section === "overview" && <Overview report={report} onOpen={open} />}
      {view.section === "review" && (
        <Review
          report={report}
          shown={view.show ?? "nearest"}
          onShow={(show) => setView({ section: "review", show })}
          marks={marks}
          onMark={setMark}
        />
      )}
      {view.section === "forms" && <Forms report={report} marks={formMarks} onMark={setFormMark} />}
      {view.section === "clusters" && <Clusters report={report} marks={marks} onMark={setMark} />}
      {view.section === "run" && <Run report={report} />}
    </Shell>
  );
}
