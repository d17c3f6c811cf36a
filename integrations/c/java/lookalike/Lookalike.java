package lookalike;

import java.nio.charset.StandardCharsets;

/** Sketches and comparisons under settings, which are JSON as {@code lookalike.h} describes. Texts are UTF-8. */
public final class Lookalike extends NativeHandle {
    public Lookalike(String settings) {
        super(read(settings.getBytes(StandardCharsets.UTF_8)));
    }

    /** The SimHash of a text, its lower 64 bits first, or null if it has none. */
    public long[] simhash(byte[] text) {
        return call(pointer -> simhash(pointer, text));
    }

    /** The MinHash signature of a text, of unsigned numbers, or null if it has none. */
    public int[] minhash(byte[] text) {
        return call(pointer -> minhash(pointer, text));
    }

    /** The JSON of {@code lookalike compare --literal --json}, in UTF-8. */
    public byte[] compare(byte[] a, byte[] b) {
        return call(pointer -> compare(pointer, a, b));
    }

    /** The number of bits in which two fingerprints differ. */
    public static int distance(long[] a, long[] b) {
        return Long.bitCount(a[0] ^ b[0]) + Long.bitCount(a[1] ^ b[1]);
    }

    @Override
    void free(long pointer) {
        release(pointer);
    }

    static native long read(byte[] settings);

    static native void release(long pointer);

    private static native long[] simhash(long pointer, byte[] text);

    private static native int[] minhash(long pointer, byte[] text);

    private static native byte[] compare(long pointer, byte[] a, byte[] b);
}
