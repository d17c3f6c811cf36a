/** The console of the service. It uses the public calls only. */
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import "../design/design.css";
import { WordingContext, useWording } from "../components/basics";
import { listKeys, reviewKeys, type KeyRow } from "../components/key-help";
import { Shell } from "../components/shell";
import { Wording, type Language } from "../language/catalog";
import { ConsoleOverview } from "./overview";
import { Service, ServiceProblem } from "./service";
import { ConsoleClusters } from "./clusters";
import { Collections } from "./collections";
import { Label } from "./label";
import { PassagesTool } from "./passages";
import { Check, CompareTool } from "./tools";

const sections = ["overview", "collections", "check", "clusters", "label", "passages", "compare"] as const;
type Section = (typeof sections)[number];

/** Returns the section that the address names after `#`; otherwise the overview. */
function findSection(): Section {
  const named = location.hash.slice(1);
  return sections.find((it) => it === named) ?? "overview";
}

/** Returns the keys of a section; none without lists. */
function findKeys(section: Section): readonly KeyRow[] | undefined {
  if (section === "label") return reviewKeys;
  return section === "clusters" || section === "passages" ? listKeys : undefined;
}

function App() {
  const [language, setLanguage] = useState<Language>(() => (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en"));
  const wording = useMemo(() => new Wording(language, "compare"), [language]);
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
    document.title = `lookalike · ${wording.text("console.title")}`;
  }, [wording]);
  return (
    <WordingContext.Provider value={wording}>
      <Console onLanguage={() => setLanguage(language === "zh" ? "en" : "zh")} />
    </WordingContext.Provider>
  );
}

function Console({ onLanguage }: { onLanguage: () => void }) {
  const say = useWording();
  const service = useMemo(() => new Service(), []);
  const [section, setSection] = useState<Section>(findSection);
  const [problem, setProblem] = useState<string | null>(null);
  const [wantsKey, setWantsKey] = useState(false);
  /** Grows with every key, so that a section begins anew. */
  const [attempt, setAttempt] = useState(0);
  const onProblem = (cause: unknown) => {
    if (cause instanceof ServiceProblem && cause.status === 401) setWantsKey(true);
    else setProblem(cause instanceof Error ? cause.message : String(cause));
  };
  const tool = { service, onProblem, key: attempt };
  return (
    <Shell
      title={say.text("console.title")}
      sections={sections.map((it) => [it, say.text(`console.${it}`)] as const)}
      section={section}
      onSection={(it) => {
        setProblem(null);
        setSection(it as Section);
      }}
      onLanguage={onLanguage}
      footer=""
      keys={findKeys(section)}
      notice={problem && <p class="note" role="alert">{problem} <button type="button" class="fold-button" onClick={() => setProblem(null)}>{say.text("console.dismiss")}</button></p>}
    >
      {wantsKey ? (
        <KeyForm
          onKey={(key) => {
            service.setKey(key);
            setAttempt(attempt + 1);
            setWantsKey(false);
          }}
        />
      ) : (
        <>
          {section === "overview" && <ConsoleOverview {...tool} />}
          {section === "collections" && <Collections {...tool} />}
          {section === "check" && <Check {...tool} />}
          {section === "clusters" && <ConsoleClusters {...tool} />}
          {section === "label" && <Label {...tool} />}
          {section === "passages" && <PassagesTool {...tool} />}
          {section === "compare" && <CompareTool {...tool} />}
        </>
      )}
    </Shell>
  );
}

function KeyForm({ onKey }: { onKey: (key: string) => void }) {
  const say = useWording();
  const [key, setKey] = useState("");
  return (
    <section class="card stack">
      <h2>{say.text("console.keyTitle")}</h2>
      <p class="muted">{say.text("console.keyNote")}</p>
      <div class="line">
        <label class="field">
          {say.text("console.key")}
          <input
            type="password"
            autocomplete="off"
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && key) onKey(key);
            }}
          />
        </label>
        <button type="button" class="button strong" disabled={!key} onClick={() => onKey(key)}>{say.text("console.keyUse")}</button>
      </div>
    </section>
  );
}

const page = document.getElementById("page");
if (page) {
  page.textContent = "";
  render(<App />, page);
}
