/** Problems of the service in the language of the page. */
import { useWording, Visible } from "../components/basics";
import { sayProblemInChinese, type SaidProblem } from "../language/problems";
import { ServiceProblem } from "./service";

/** A problem. What the service says only in English is marked as English, so that it is read and hyphenated right. */
export function ProblemText({ problem }: { problem: unknown }) {
  const { language, colon } = useWording();
  const message = problem instanceof Error ? problem.message : String(problem);
  const inEnglish: SaidProblem = { title: null, detail: message, isTranslated: false };
  const { title, detail, isTranslated } = language === "zh" && problem instanceof ServiceProblem ? sayProblemInChinese(problem.code, message) : inEnglish;
  const text = <Visible text={detail} />;
  return <>{title !== null && title + colon}{isTranslated ? text : <span lang="en">{text}</span>}</>;
}
