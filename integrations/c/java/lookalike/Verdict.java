package lookalike;

import java.nio.charset.StandardCharsets;

/**
 * The answer to a document.
 *
 * @param isDuplicate true if a kept document matches
 * @param isLate true if the document is older than the window; it was not stored
 * @param seq number of the document in the stream, or -1 if it was not stored
 * @param similarity to the kept document
 * @param method how the pair was found, or null
 * @param of id of the kept document in UTF-8, or null
 */
public record Verdict(boolean isDuplicate, boolean isLate, long seq, double similarity, String method, byte[] of) {
    /** The id of the kept document, or null. */
    public String keptId() {
        return of == null ? null : new String(of, StandardCharsets.UTF_8);
    }
}
