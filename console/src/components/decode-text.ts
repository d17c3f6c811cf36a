/** Encodings of the files that a user gives to a page. */

/** A text, and the name of its encoding if neither the bytes nor a mark settle it. */
export interface DecodedText {
  text: string;
  guessed?: string;
}

/** Reads a file in UTF-8, UTF-16 with its mark, or GB18030; returns null if it is none of these. */
export function decodeFile(bytes: Uint8Array): DecodedText | null {
  const marks: [number, number, string][] = [[0xff, 0xfe, "utf-16le"], [0xfe, 0xff, "utf-16be"]];
  const marked = marks.find(([first, second]) => bytes[0] === first && bytes[1] === second);
  for (const encoding of marked ? [marked[2]] : ["utf-8", "gb18030"]) {
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
      return encoding === "gb18030" ? { text, guessed: encoding } : { text };
    } catch {
      // Another encoding may fit.
    }
  }
  return null;
}

/** Returns the text of a file; null if it is in no encoding that is known here. */
export const decodeText = (bytes: Uint8Array): string | null => decodeFile(bytes)?.text ?? null;
