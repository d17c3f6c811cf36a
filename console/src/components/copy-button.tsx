/** A button that copies a text, and says so. */
import { useEffect, useState } from "preact/hooks";
import { useWording } from "./basics";

/** Milliseconds for which the button says that the text was copied. */
const toldMilliseconds = 2500;

/** Copies a text to the clipboard. A page from disk may not use the clipboard itself, and copies a selection then. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const say = useWording();
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), toldMilliseconds);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () => void copyText(text).then((isCopied) => setState(isCopied ? "copied" : "failed"));
  return (
    <span class="line">
      <button type="button" class="button" onClick={copy}>{label}</button>
      <span class="muted" role="status">{state === "idle" ? "" : say.text(`copy.${state}`)}</span>
    </span>
  );
}
