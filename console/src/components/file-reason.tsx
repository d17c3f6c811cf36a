/** Why a file is not read, in words for those who gave it. */
import { catalogs, type MessageKey, type Wording } from "../language/catalog";
import { Phrase, useWording } from "./basics";

/** Beginning of a reason of the service, which names the file once more. */
const namedFile = /^'[^]*' cannot be read: /;

/** What a reader of `.docx` files says of one that was cut, or that is none. */
const damagedArchive = /invalid Zip archive[^\n]*/i;

/** Returns a message with its technical reasons in words for everybody. */
export const clarifyReason = (say: Wording, message: string): string => message.replace(damagedArchive, say.text("drop.bad.damaged"));

/** Returns the message of a reason that the console has given; null of another one. */
function findMessage(reason: string): MessageKey | null {
  const keys = Object.keys(catalogs.en) as MessageKey[];
  return keys.find((key) => key.startsWith("drop.bad.") && catalogs.en[key] === reason) ?? null;
}

/** Why a file is not read, in the language of the page. */
export function FileReason({ text }: { text: string }) {
  const say = useWording();
  const reason = text.replace(namedFile, "");
  const key = damagedArchive.test(reason) ? "drop.bad.damaged" : findMessage(reason);
  return key ? <>{say.text(key)}</> : <Phrase text={reason} />;
}
