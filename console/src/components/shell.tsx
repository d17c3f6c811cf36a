/** What every page has around its content: the name, sections, language, colours, printing. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { MessageKey } from "../language/catalog";
import { useWording } from "./basics";
import { KeyHelp, type KeyRow } from "./key-help";

interface ShellProps {
  title: string;
  /** Sections by name and label; none if the page is one. */
  sections?: readonly (readonly [string, string])[];
  section?: string;
  onSection?: (section: string) => void;
  onLanguage: () => void;
  /** Keys of the page; none without lists. */
  keys?: readonly KeyRow[] | undefined;
  tools?: ComponentChildren;
  /** A line in the header, which stays in sight. */
  headline?: ComponentChildren;
  notice?: ComponentChildren;
  footer: string;
  children: ComponentChildren;
}

export function Shell({ title, sections = [], section, onSection, onLanguage, keys, tools, headline, notice, footer, children }: ShellProps) {
  const say = useWording();
  const isTabbed = sections.length > 0;
  return (
    <>
      <header class="top">
        <div class="top-row">
          <h1 class="brand">
            <strong>lookalike</strong> <span class="muted">{title}</span>
          </h1>
          <nav class="tabs" role={isTabbed ? "tablist" : undefined} aria-label={say.text("app.sections")}>
            {sections.map(([name, label]) => (
              <button
                type="button"
                class="tab"
                role="tab"
                id={`tab-${name}`}
                aria-selected={section === name}
                aria-controls="section"
                key={name}
                onClick={() => onSection?.(name)}
              >
                {label}
              </button>
            ))}
          </nav>
          <div class="tools">
            <ThemeChoice />
            <button type="button" class="button" title={say.text("app.languageTitle")} onClick={onLanguage}>
              {say.text("app.language")}
            </button>
            <button type="button" class="button" onClick={() => print()}>{say.text("app.print")}</button>
            {keys && <KeyHelp keys={keys} />}
            {tools}
          </div>
        </div>
        {headline}
      </header>
      <main class="main">
        {notice}
        {isTabbed ? (
          <div class="section" id="section" role="tabpanel" aria-labelledby={`tab-${section}`}>{children}</div>
        ) : (
          <div class="section">{children}</div>
        )}
        <footer class="muted">{footer}</footer>
      </main>
    </>
  );
}

type Theme = "auto" | "light" | "dark";

function ThemeChoice() {
  const say = useWording();
  const [theme, setTheme] = useState<Theme>("auto");
  useEffect(() => {
    if (theme === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", theme);
  }, [theme]);
  const names: Record<Theme, MessageKey> = { auto: "app.themeAuto", light: "app.themeLight", dark: "app.themeDark" };
  return (
    <label class="field">
      {say.text("app.theme")}
      <select value={theme} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
        {(["auto", "light", "dark"] as const).map((it) => (
          <option value={it} key={it}>{say.text(names[it])}</option>
        ))}
      </select>
    </label>
  );
}

/** Returns the sentence at the foot of a page: when and by what it was written. */
export function useFooter(created: string, version: string): string {
  const say = useWording();
  return say.text("app.created", { time: new Date(created).toLocaleString(say.locale), version });
}
