/** Encodings of the files that a user gives to a page. */

/** A text, and the name of its encoding if neither the bytes nor a mark settle it. */
export interface DecodedText {
  text: string;
  guessed?: string;
}

function decodeAs(encoding: string, bytes: Uint8Array): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

const hasMark = (bytes: Uint8Array, first: number, second: number): boolean => bytes[0] === first && bytes[1] === second;

/** Returns the text of a file in UTF-8, or in UTF-16 with its mark; null if it is neither. */
export function decodeUnicode(bytes: Uint8Array): string | null {
  if (hasMark(bytes, 0xff, 0xfe)) return decodeAs("utf-16le", bytes);
  return decodeAs(hasMark(bytes, 0xfe, 0xff) ? "utf-16be" : "utf-8", bytes);
}

/** Reads a file in UTF-8, UTF-16 with its mark, or GB18030; returns null if it is none of these. */
export function decodeFile(bytes: Uint8Array): DecodedText | null {
  const text = decodeUnicode(bytes);
  if (text !== null) return { text };
  const chinese = decodeAs("gb18030", bytes);
  return chinese === null ? null : { text: chinese, guessed: "gb18030" };
}

/** Returns the text of a file; null if it is in no encoding that is known here. */
export const decodeText = (bytes: Uint8Array): string | null => decodeFile(bytes)?.text ?? null;
