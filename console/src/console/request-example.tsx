/** Requests of the service as commands of a shell, so that what the console does can be tried, changed and put in a script. */
import { useState } from "preact/hooks";
import { CopyButton } from "../components/copy-button";
import { useWording } from "../components/basics";
import type { Service } from "./service";

/** A request as an example shows it. */
export interface ExampleRequest {
  method?: "PUT" | "DELETE";
  /** Path and query. */
  path: string;
  /** Body, which is sent as JSON. */
  body?: unknown;
}

/** Characters of a body up to which it stands in a command; a larger one is read from a file. */
const longestBody = 4000;

/** Returns a text as a shell takes it: nothing in single quotes has a meaning. */
export const quoteForShell = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** File from which a command reads a long body. */
const bodyFile = "request.json";

/** Returns the options of curl that send a body. */
function writeBody(body: unknown): string[] {
  if (body === undefined) return [];
  const json = JSON.stringify(body);
  return ["--json", json.length <= longestBody ? quoteForShell(json) : `@${bodyFile}`];
}

/** Returns a request as a command. The key is a variable of the shell, because a command with a key would be kept in its history. */
export function writeCommand({ method, path, body }: ExampleRequest, origin: string, hasKey: boolean): string {
  const key = hasKey ? ["-H", '"Authorization: Bearer $LOOKALIKE_KEY"'] : [];
  return ["curl", ...(method ? ["-X", method] : []), quoteForShell(`${origin}${path}`), ...key, ...writeBody(body)].join(" ");
}

interface RequestExamplesProps {
  service: Service;
  /** Returns the requests. They are written once they are shown, because a text can be long. */
  list: () => readonly ExampleRequest[];
}

/** Requests that open at a click. */
export function RequestExamples({ service, list }: RequestExamplesProps) {
  const say = useWording();
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="requests" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{say.text("example.title")}</summary>
      {isOpen && <Commands commands={list().map((it) => writeCommand(it, location.origin, service.hasKey))} hasKey={service.hasKey} />}
    </details>
  );
}

function Commands({ commands, hasKey }: { commands: readonly string[]; hasKey: boolean }) {
  const say = useWording();
  return (
    <div class="stack">
      {commands.map((it, at) => (
        <div class="stack" key={at}>
          <pre>{it}</pre>
          <CopyButton text={it} label={say.text("example.copy")} />
        </div>
      ))}
      <p class="muted">
        {commands.some((it) => it.endsWith(` @${bodyFile}`)) && <>{say.text("example.file", { file: bodyFile })}{say.gap}</>}
        {say.text(hasKey ? "example.withKey" : "example.about")} <a href="/openapi.json">/openapi.json</a>
      </p>
    </div>
  );
}
