/** The console of the service. It uses the public calls only. */
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import "../design/design.css";
import { WordingContext, useWording } from "../components/basics";
import { keepPageOnDrop } from "../components/keep-page";
import { listKeys, passageKeys, reviewKeys, type KeyRow } from "../components/key-help";
import { Shell } from "../components/shell";
import { Wording, type Language } from "../language/catalog";
import { findTab, parseAddress, sections, writeAddress, type Address, type Section, type TabSection } from "./address";
import { Administration } from "./administration";
import { ConsoleClusters } from "./clusters";
import { Collections } from "./collections";
import { CreateCollection } from "./create-collection";
import { Documents } from "./documents";
import { ImportNotice, useImports } from "./imports";
import { Label } from "./label";
import { ConsoleOverview } from "./overview";
import { PassagesTool } from "./passages";
import { ProblemText } from "./problem-text";
import { Service, ServiceProblem } from "./service";
import { Check, CompareTool } from "./tools";

/** Returns the keys of a section; none without lists. */
function findKeys(section: Section): readonly KeyRow[] | undefined {
  if (section === "label" || section === "clusters") return reviewKeys;
  if (section === "passages") return passageKeys;
  return section === "documents" ? listKeys : undefined;
}

const overview: Address = { section: "overview", collection: null, item: null };

/** What the page shows, and how often another place was visited. */
interface Visit {
  address: Address;
  /** Grows with every visit of another place, and not where the page names in its address what it shows anyway. */
  visit: number;
}

/** Returns what the page shows and a function that shows something else. Sections keep the collection that was chosen last. */
function useAddress(): [Visit, (change: Partial<Address>, replaces?: boolean) => void] {
  const [shown, setShown] = useState<Visit>(() => ({ address: parseAddress(location.hash) ?? overview, visit: 0 }));
  const latest = useRef(shown);
  const show = (address: Address, isVisit: boolean) => setShown((latest.current = { address, visit: latest.current.visit + Number(isVisit) }));
  useEffect(() => {
    const onHash = () => {
      const next = parseAddress(location.hash);
      if (next) show(next, true);
    };
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  const change = (part: Partial<Address>, replaces = false) => {
    const next = { ...latest.current.address, ...part };
    const hash = writeAddress(next);
    if (hash !== location.hash) history[replaces ? "replaceState" : "pushState"](null, "", hash);
    show(next, !replaces);
  };
  return [shown, change];
}

/** Follows a link to a place inside the page without losing the address: places such as `#a1` are no addresses. */
function followLocally(event: MouseEvent): void {
  const link = (event.target as Element).closest("a");
  const place = link?.getAttribute("href") ?? "";
  if (!place.startsWith("#") || parseAddress(place)) return;
  event.preventDefault();
  document.querySelectorAll(".target").forEach((it) => it.classList.remove("target"));
  const target = document.getElementById(place.slice(1));
  target?.classList.add("target");
  target?.scrollIntoView({ block: "center" });
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
  const [{ address, visit }, onAddress] = useAddress();
  const { section } = address;
  const [problem, setProblem] = useState<unknown>(null);
  const [wantsKey, setWantsKey] = useState(false);
  /** Grows with every key, so that a section begins anew. */
  const [attempt, setAttempt] = useState(0);
  // A problem is about what was shown before: another address or another input ends it, as another request does.
  const endProblem = () => setProblem(null);
  useEffect(endProblem, [section, address.collection]);
  const onProblem = (cause: unknown) => {
    if (cause === null) endProblem();
    else if (cause instanceof ServiceProblem && cause.status === 401) setWantsKey(true);
    else setProblem(() => cause);
  };
  const imports = useImports(service, onProblem);
  const tool = { service, onProblem, imports, address, visit, onAddress, key: attempt };
  return (
    <Shell
      title={say.text("console.title")}
      sections={sections.map((it) => [it, say.text(`console.${it}`)] as const)}
      section={findTab(section)}
      onSection={(it) => onAddress({ section: it as TabSection, item: null })}
      onLanguage={onLanguage}
      footer=""
      keys={findKeys(section)}
      headline={<ImportNotice imports={imports} address={address} />}
      notice={problem !== null && <p class="note" role="alert"><ProblemText problem={problem} /> <button type="button" class="fold-button" onClick={endProblem}>{say.text("console.dismiss")}</button></p>}
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
        <div class="contents" onInput={endProblem} onClick={followLocally}>
          {section === "overview" && <ConsoleOverview {...tool} />}
          {section === "collections" && <Collections {...tool} />}
          {section === "new" && <CreateCollection {...tool} />}
          {section === "check" && <Check {...tool} />}
          {section === "documents" && <Documents {...tool} />}
          {section === "clusters" && <ConsoleClusters {...tool} />}
          {section === "label" && <Label {...tool} />}
          {section === "passages" && <PassagesTool {...tool} />}
          {section === "compare" && <CompareTool {...tool} />}
          {section === "administration" && <Administration {...tool} />}
        </div>
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
  keepPageOnDrop();
  render(<App />, page);
}
