/** Encodings of the files that a user gives to a page. */

/** Returns the text of a file in UTF-8, UTF-16 with its mark, or GB18030; null if it is none of these. */
export function decodeText(bytes: Uint8Array): string | null {
  const marks: [number, number, string][] = [[0xff, 0xfe, "utf-16le"], [0xfe, 0xff, "utf-16be"]];
  const marked = marks.find(([first, second]) => bytes[0] === first && bytes[1] === second);
  for (const encoding of marked ? [marked[2]] : ["utf-8", "gb18030"]) {
    try {
      return new TextDecoder(encoding, { fatal: true }).decode(bytes);
    } catch {
      // Another encoding may fit.
    }
  }
  return null;
}
