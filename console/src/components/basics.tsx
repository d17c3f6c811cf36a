/** Small parts that every page uses. */
import { createContext, type ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { Wording } from "../language/catalog";
import { toChinese } from "../language/phrases";

/** The language of the page. */
export const WordingContext = createContext(new Wording("en"));
export const useWording = (): Wording => useContext(WordingContext);

/** Characters that cannot be seen, or that change the direction of others. Joiners of emoji are left alone. */
const invisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;
const invisibleRuns = new RegExp(`(${invisible.source})`);

/** Returns a text in which invisible characters are shown by their code points. */
export function Visible({ text }: { text: string }) {
  const { text: say } = useWording();
  if (!invisible.test(text)) return <>{text}</>;
  const parts = text.split(invisibleRuns).map((part, at) => {
    if (at % 2 === 0) return part;
    if (part === "\r") return "";
    const code = `U+${part.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    return (
      <span class="control" title={say("pair.control", { code })}>
        {code}
      </span>
    );
  });
  return <>{parts}</>;
}

/** A phrase of the engine in the language of the page. One that is not listed stays English, and says so to readers. */
export function Phrase({ text }: { text: string }) {
  const { language } = useWording();
  const chinese = language === "zh" ? toChinese(text) : null;
  if (chinese !== null) return <Visible text={chinese} />;
  return <span lang="en"><Visible text={text} /></span>;
}

/** An id or a name. Its direction does not leak into the text around it. */
export function Name({ text }: { text: string }) {
  return (
    <bdi>
      <Visible text={text} />
    </bdi>
  );
}

/** Characters at the end of a name that keep their place while there is room for them. */
const tailCharacters = 22;
/** Characters of a name that are shown at most. */
const shownCharacters = 240;

/** A name on one line. Of a long one the part before its end is cut to the room there is, because names of a corpus begin alike. */
export function ShortName({ text }: { text: string }) {
  const characters = [...text];
  if (characters.length <= tailCharacters) return <Name text={text} />;
  const isCut = characters.length > shownCharacters;
  const head = characters.slice(0, isCut ? shownCharacters / 2 : -tailCharacters).join("");
  return (
    <bdi class="shortened" title={text}>
      <span class="head"><Visible text={isCut ? `${head}…` : head} /></span>
      <span class="tail"><Visible text={characters.slice(-tailCharacters).join("")} /></span>
    </bdi>
  );
}

/** Characters of an excerpt, as many as the widest list shows. */
export const excerptCharacters = 160;

/** The beginning of a text on one line. */
export function Excerpt({ text }: { text: string }) {
  const beginning = [...text.slice(0, 2 * excerptCharacters)].slice(0, excerptCharacters).join("");
  return <bdi class="excerpt"><Visible text={beginning.replace(/\s+/g, " ").trim()} /></bdi>;
}

export function Card({ title, children, id }: { title: string; children: ComponentChildren; id?: string }) {
  return (
    <section class="card" id={id}>
      <h2>{title}</h2>
      <div class="stack">{children}</div>
    </section>
  );
}

export function Stat({ value, label, more }: { value: string; label: string; more?: string | undefined }) {
  return (
    <div class="stat">
      <b>{value}</b>
      <span>{label}</span>
      {more && <small>{more}</small>}
    </div>
  );
}

/** Pairs of a name and a value. Empty values are left out. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
    </dl>
  );
}
