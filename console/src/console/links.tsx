/** Links between the sections, and what stands where there is nothing to show: what to do next, and the way there. */
import type { ComponentChildren } from "preact";
import { useWording } from "../components/basics";
import type { MessageKey } from "../language/catalog";
import { writeAddress, type Section } from "./address";

interface SectionLinkProps {
  section: Section;
  collection?: string | undefined;
  item?: string | undefined;
  /** Looks like a button if set, and like the first one of a page if it is `strong`. */
  button?: "plain" | "strong";
  children: ComponentChildren;
}

export function SectionLink({ section, collection, item, button, children }: SectionLinkProps) {
  const href = writeAddress({ section, collection: collection ?? null, item: item ?? null });
  return <a class={button && `button ${button}`} href={href}>{children}</a>;
}

/** An empty place: why it is empty, and links to what fills it. */
export function EmptyState({ why, links }: { why: MessageKey; links: readonly { to: MessageKey; section: Section; collection?: string }[] }) {
  const say = useWording();
  return (
    <div class="card stack">
      <p class="muted">{say.text(why)}</p>
      <div class="line">
        {links.map(({ to, section, collection }) => <SectionLink section={section} collection={collection} button="plain" key={to}>{say.text(to)}</SectionLink>)}
      </div>
    </div>
  );
}

/** What a section says where there is no collection. */
export function NoCollections() {
  return <EmptyState why="console.noCollections" links={[{ to: "collections.new", section: "new" }]} />;
}
