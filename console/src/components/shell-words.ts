/** Words of commands as shells take them. */

/**
 * Quotes a word of a command. Shells of Unix and of Windows read quotation marks alike, unless one of their own characters
 * stands between them; names of Windows have few of those.
 */
export function quoteWord(word: string): string {
  if (/^[\w./:=+-]+$/.test(word)) return word;
  return /["$`\\!%]/.test(word) ? `'${word.replaceAll("'", "'\\''")}'` : `"${word}"`;
}
