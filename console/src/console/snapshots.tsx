/** Snapshots of one collection or of all, also of those that are gone: make, restore and delete them. */
import { useEffect, useState } from "preact/hooks";
import { Card, Name, useWording } from "../components/basics";
import type { ToolProps } from "./collection-choice";
import { ProblemText } from "./problem-text";
import { useChanges, useRequests } from "./requests";
import { ServiceProblem, type Snapshot } from "./service";

/** Returns a name for a snapshot of this minute. */
const nameSnapshot = (now: Date): string => `console-${now.toISOString().slice(0, 16).replace(/\D/g, "")}`;

/** Snapshots of a collection, or of all if `name` is null. Only the first can be made here. */
export function Snapshots({ service, onProblem, onAddress, name }: ToolProps & { name: string | null }) {
  const say = useWording();
  const [snapshots, setSnapshots] = useState<Snapshot[] | ServiceProblem | null>(null);
  const [wanted, setWanted] = useState(() => nameSnapshot(new Date()));
  const requests = useRequests(name, onProblem);
  const copies = useChanges(onProblem);
  const changes = useChanges(onProblem);
  const isWaiting = copies.isWaiting || changes.isWaiting;
  // A service without a place for snapshots, or a key without the right to see them, is no fault of the page.
  const list = () =>
    service.listSnapshots(name).catch((problem: unknown) => {
      if (problem instanceof ServiceProblem && problem.status !== 401) return problem;
      throw problem;
    });
  const read = () => requests.send(list, setSnapshots);
  useEffect(() => void read(), [name]);
  const make = (collection: string) => copies.send(() => service.makeSnapshot(collection, wanted).then(read), () => {});
  const remove = (snapshot: Snapshot) => changes.send(() => service.deleteSnapshot(snapshot).then(read), () => {});
  const restore = (snapshot: Snapshot, restored: string) =>
    changes.send(() => service.restoreSnapshot(snapshot, restored), () => onAddress({ section: "collections", collection: restored, item: null }));
  return (
    <Card title={say.text(name === null ? "snapshots.ofAll" : "collections.snapshots")}>
      {snapshots instanceof ServiceProblem ? (
        <p class="note"><ProblemText problem={snapshots} /></p>
      ) : (
        <>
          <p class="muted">{say.text(name === null ? "snapshots.restoreAbout" : "collections.snapshotAbout")}</p>
          {name !== null && (
            <div class="line">
              <label class="field">{say.text("console.name")} <input value={wanted} maxLength={64} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
              <button type="button" class="button" disabled={!wanted || snapshots === null || isWaiting} onClick={() => make(name)}>{say.text("collections.makeSnapshot")}</button>
              {copies.isWaiting && <span class="muted" role="status">{say.text("collections.makingSnapshot")}</span>}
            </div>
          )}
          {snapshots?.length === 0 && name === null && <p class="muted">{say.text("snapshots.none")}</p>}
          {snapshots && snapshots.length > 0 && (
            <div class="wide-table" tabIndex={0} role="group" aria-label={say.text("collections.snapshots")}>
              <table class="labelled">
                <thead>
                  <tr>
                    <th>{say.text("console.name")}</th>
                    {name === null && <th>{say.text("console.collection")}</th>}
                    <th>{say.text("collections.time")}</th>
                    <th class="number">{say.text("collections.size")}</th>
                    <th>{say.text("snapshots.actions")}</th>
                  </tr>
                </thead>
                <tbody>
                  {snapshots.map((it) => (
                    <tr key={`${it.collection} ${it.name}`}>
                      <td><Name text={it.name} /></td>
                      {name === null && <td data-label={say.text("console.collection")}><Name text={it.collection} /></td>}
                      <td data-label={say.text("collections.time")}>{new Date(it.time).toLocaleString(say.locale)}</td>
                      <td class="number" data-label={say.text("collections.size")}>{say.bytes(it.bytes)}</td>
                      <td><SnapshotActions snapshot={it} isWaiting={isWaiting} onRestore={restore} onDelete={remove} /></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </Card>
  );
}

interface SnapshotActionsProps {
  snapshot: Snapshot;
  isWaiting: boolean;
  onRestore: (snapshot: Snapshot, restored: string) => void;
  onDelete: (snapshot: Snapshot) => void;
}

/** Buttons that open the form of an action, and that form: the name of the restored collection, or a question. */
function SnapshotActions({ snapshot, isWaiting, onRestore, onDelete }: SnapshotActionsProps) {
  const say = useWording();
  const [action, setAction] = useState<"restore" | "delete" | null>(null);
  const [restored, setRestored] = useState(`${snapshot.collection}-restored`.slice(0, 64));
  const cancel = <button type="button" class="button" onClick={() => setAction(null)}>{say.text("collections.cancel")}</button>;
  if (action === "restore") {
    return (
      <div class="line">
        <label class="field">{say.text("snapshots.as")} <input value={restored} maxLength={64} onInput={(event) => setRestored(event.currentTarget.value)} /></label>
        <button type="button" class="button strong" disabled={!restored || isWaiting} onClick={() => onRestore(snapshot, restored)}>{say.text("snapshots.restore")}</button>
        {cancel}
        {isWaiting && <span class="muted" role="status">{say.text("snapshots.restoring")}</span>}
      </div>
    );
  }
  if (action === "delete") {
    return (
      <div class="line">
        <button type="button" class="button danger" disabled={isWaiting} onClick={() => onDelete(snapshot)}>{say.text("snapshots.deleteNow")}</button>
        {cancel}
      </div>
    );
  }
  return (
    <div class="line">
      <button type="button" class="button" onClick={() => setAction("restore")}>{say.asking("snapshots.restore")}</button>
      <button type="button" class="button" onClick={() => setAction("delete")}>{say.asking("snapshots.delete")}</button>
    </div>
  );
}
