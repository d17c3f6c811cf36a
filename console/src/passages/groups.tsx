/** Groups of documents, from a table that the user adds: their marks in the picture, and which of them are shown. */
import { useState } from "preact/hooks";
import { Name, useWording } from "../components/basics";
import { readNameTable, type NameTable, type PairKind, type TableProblem } from "./name-table";

/** Colours and shapes of marks. No two of the first twenty groups have both in common, and no group is known by its colour alone. */
const colours = 5;
const shapes = 4;

/** Returns the outline of the mark of a group around a point: a circle, a square, a triangle or a diamond. */
export function drawMark(group: number, x: number, y: number, radius: number): string {
  const points = (...corners: readonly (readonly [number, number])[]) => `M${corners.map(([right, down]) => `${(x + right * radius).toFixed(1)} ${(y + down * radius).toFixed(1)}`).join("L")}Z`;
  switch (Math.max(0, group) % shapes) {
    case 1: return points([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]);
    case 2: return points([0, -1.2], [1.1, 0.8], [-1.1, 0.8]);
    case 3: return points([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]);
    default: {
      const [left, size] = [(x - radius).toFixed(1), radius.toFixed(1)];
      return `M${left} ${y.toFixed(1)}a${size} ${size} 0 1 0 ${(2 * radius).toFixed(1)} 0a${size} ${size} 0 1 0 ${(-2 * radius).toFixed(1)} 0Z`;
    }
  }
}

/** Returns the class of the colour of a group; documents without one, number −1, have that of all pictures. */
export const markClass = (group: number): string => (group < 0 ? "" : `group-${group % colours}`);

/** A table with the choice of what is shown of it. */
export interface GroupFilter {
  hidden: ReadonlySet<string>;
  kind: PairKind;
}

export const allGroups: GroupFilter = { hidden: new Set(), kind: "all" };

interface TableInputProps {
  /** Names of the documents of the report. */
  names: readonly string[];
  table: NameTable | null;
  onTable: (table: NameTable | null) => void;
}

/** The choice of a table, and what it says of the documents. */
export function TableInput({ names, table, onTable }: TableInputProps) {
  const say = useWording();
  const [problem, setProblem] = useState<TableProblem | null>(null);
  const read = async (file: File) => {
    const found = readNameTable(new Uint8Array(await file.arrayBuffer()), names);
    setProblem(typeof found === "string" ? found : null);
    if (typeof found !== "string") onTable(found);
  };
  return (
    <>
      <label class="button file" title={say.text("passages.tableHelp")}>
        {say.text("passages.table")}
        <input
          class="hidden"
          type="file"
          accept=".csv,.tsv,.txt,text/csv"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file) void read(file);
            event.currentTarget.value = "";
          }}
        />
      </label>
      {table && <button type="button" class="button" onClick={() => onTable(null)}>{say.text("passages.tableRemove")}</button>}
      {problem && <span class="note" role="alert">{say.text(`passages.table.${problem}`)}{say.gap}{say.text("passages.tableHelp")}</span>}
    </>
  );
}

interface GroupChoiceProps {
  table: NameTable;
  /** Number of documents of the report. */
  documents: number;
  filter: GroupFilter;
  onFilter: (filter: GroupFilter) => void;
  nameOfGroup: (group: string) => string;
  isAnonymous: boolean;
}

/** What a table says, its groups with their marks, and the choice of the pairs. */
export function GroupChoice({ table, documents, filter, onFilter, nameOfGroup, isAnonymous }: GroupChoiceProps) {
  const say = useWording();
  const toggle = (group: string) => {
    const hidden = new Set(filter.hidden);
    if (!hidden.delete(group)) hidden.add(group);
    onFilter({ ...filter, hidden });
  };
  const sizes = new Map<string, number>();
  for (const { group } of table.documents.values()) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  return (
    <section class="card stack" aria-label={say.text("passages.groups")}>
      <p class="muted" role="status">
        {say.text("passages.tableRead", { n: table.documents.size, documents })}
        {table.unknown.length > 0 && <>{say.gap}{say.text("passages.tableUnknown", { n: table.unknown.length })}{!isAnonymous && <>{say.colon}<Name text={table.unknown.slice(0, 3).join(", ")} /></>}</>}
      </p>
      {table.groups.length > 0 && (
        <div class="line">
          {table.groups.map((group, at) => (
            <label class="choice" key={group}>
              <input type="checkbox" checked={!filter.hidden.has(group)} onChange={() => toggle(group)} />
              <svg class="chart graph group-mark" viewBox="0 0 16 16" aria-hidden="true"><path class={`member ${markClass(at)}`} d={drawMark(at, 8, 8, 6)} /></svg>
              <Name text={nameOfGroup(group)} /> <span class="muted">{say.count(sizes.get(group) ?? 0)}</span>
            </label>
          ))}
          <label class="field">
            {say.text("list.show")}
            <select value={filter.kind} onChange={(event) => onFilter({ ...filter, kind: event.currentTarget.value as PairKind })}>
              {(["all", "within", "between"] as const).map((it) => <option value={it} key={it}>{say.text(`passages.kind.${it}`)}</option>)}
            </select>
          </label>
        </div>
      )}
    </section>
  );
}
