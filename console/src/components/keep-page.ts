/**
 * Keeps the page when a file is dropped beside the boxes for files: a browser would open the file in its place, and what was
 * typed would be lost.
 */
export function keepPageOnDrop(): void {
  for (const event of ["dragover", "drop"]) addEventListener(event, (it) => it.preventDefault());
}
