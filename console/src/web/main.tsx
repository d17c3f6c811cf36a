/** The page that does the work in the browser: the engine is a part of it, and nothing is sent anywhere. */
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import "../design/design.css";
import "./web.css";
import { WordingContext, useWording } from "../components/basics";
import { clarifyReason } from "../components/file-reason";
import { keepPageOnDrop } from "../components/keep-page";
import { Shell } from "../components/shell";
import { FolderUnreadable } from "../console/document-files";
import { Wording, type Language } from "../language/catalog";
import { CompareSection } from "./compare";
import { DictionaryMissing, Engine, EngineRefusal, MemoryExceeded, dictionaryFile } from "./engine";
import { FolderSection } from "./folder";
import { LearnSection } from "./learn";
import { addWebMessages, sayWeb } from "./messages";
import { RefusalText } from "./refusals";

addWebMessages();

const sections = ["learn", "compare", "folder"] as const;
type Section = (typeof sections)[number];

/** The section that the address names, else the first one. */
const findSection = (): Section => sections.find((name) => location.hash === `#${name}`) ?? "learn";

function App() {
  const [language, setLanguage] = useState<Language>(() => (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en"));
  const wording = useMemo(() => new Wording(language, "compare"), [language]);
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
    document.title = `lookalike · ${sayWeb(wording, "web.title")}`;
  }, [wording]);
  return (
    <WordingContext.Provider value={wording}>
      <WebPage onLanguage={() => setLanguage(language === "zh" ? "en" : "zh")} />
    </WordingContext.Provider>
  );
}

function WebPage({ onLanguage }: { onLanguage: () => void }) {
  const say = useWording();
  const engine = useMemo(() => new Engine(), []);
  const [section, setSection] = useState<Section>(findSection);
  const [problem, setProblem] = useState<unknown>(null);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    engine.recipes.then(() => setReady(true), setProblem);
  }, [engine]);
  /** Grows when the dictionary arrives, so that what needed it is asked again. */
  const [attempt, setAttempt] = useState(0);
  const tool = { engine, onProblem: setProblem, attempt };
  const open = (name: Section) => {
    setProblem(null);
    setSection(name);
    history.replaceState(null, "", `#${name}`);
  };
  return (
    <Shell
      title={sayWeb(say, "web.title")}
      sections={sections.map((name) => [name, sayWeb(say, `web.${name}`)] as const)}
      section={section}
      onSection={(name) => open(name as Section)}
      onLanguage={onLanguage}
      footer={sayWeb(say, "web.private")}
      notice={
        <Notice
          engine={engine}
          problem={problem}
          isReady={isReady}
          onProblem={setProblem}
          onDictionary={() => {
            setProblem(null);
            setAttempt(attempt + 1);
          }}
        />
      }
    >
      {section === "learn" && (
        <p class="line">
          {sayWeb(say, "web.essays")} <button type="button" class="button" onClick={() => open("folder")}>{sayWeb(say, "web.essaysOpen")}</button>
        </p>
      )}
      {section === "learn" && <LearnSection {...tool} />}
      {section === "compare" && <CompareSection {...tool} />}
      {section === "folder" && <FolderSection {...tool} />}
    </Shell>
  );
}

/** Returns why something failed. A reason of a damaged file is one for those who gave it. */
function sayProblem(say: Wording, problem: unknown): string {
  if (problem instanceof MemoryExceeded) return sayWeb(say, "web.memoryExceeded");
  if (problem instanceof FolderUnreadable) return sayWeb(say, "web.folderUnreadable", { name: problem.folder });
  const message = problem instanceof Error ? problem.message : String(problem);
  return clarifyReason(say, message);
}

interface NoticeProps {
  engine: Engine;
  problem: unknown;
  isReady: boolean;
  onProblem: (problem: unknown) => void;
  onDictionary: () => void;
}

/** The state of the engine: that it is being loaded, or why a call failed. */
function Notice({ engine, problem, isReady, onProblem, onDictionary }: NoticeProps) {
  const say = useWording();
  if (problem instanceof DictionaryMissing) {
    return (
      <p class="note" role="alert">
        {sayWeb(say, "web.dictionaryMissing", { file: dictionaryFile })}{" "}
        <label class="button file">
          {sayWeb(say, "web.dictionaryChoose")}
          <input
            class="hidden"
            type="file"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file) void engine.takeDictionary(file).then(onDictionary, onProblem);
            }}
          />
        </label>
      </p>
    );
  }
  if (problem !== null) {
    const message = sayProblem(say, problem);
    return (
      <p class="note" role="alert">
        {problem instanceof EngineRefusal ? <RefusalText text={message} /> : <span>{message}</span>}{" "}
        <button type="button" class="fold-button" onClick={() => onProblem(null)}>{say.text("console.dismiss")}</button>
      </p>
    );
  }
  return isReady ? null : <p class="muted" role="status">{sayWeb(say, "web.loading")}</p>;
}

const page = document.getElementById("page");
if (page) {
  page.textContent = "";
  keepPageOnDrop();
  render(<App />, page);
}
