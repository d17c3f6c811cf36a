package lookalike;

import java.nio.charset.StandardCharsets;

/** Checks documents one after another and keeps those that are new. Any number of threads can use a stream. */
public final class Stream extends NativeHandle {
    /** The time of a document that has none: the clock of the machine. */
    public static final long NOW = Long.MIN_VALUE;

    /** An empty stream; the settings are JSON as {@code lookalike.h} describes. */
    public Stream(String settings) {
        super(begin(settings));
    }

    private Stream(long pointer) {
        super(pointer);
    }

    /** Reads a stream that {@link #save} wrote. */
    public static Stream open(String path) {
        return new Stream(open(path.getBytes(StandardCharsets.UTF_8)));
    }

    /** Checks a document and inserts it. Its text and id are UTF-8, its time microseconds since 1970. */
    public Verdict insert(byte[] text, byte[] id, long time) {
        return call(pointer -> check(pointer, text, id, time, true));
    }

    /** The same for strings, at the time of the clock. */
    public Verdict insert(String text, String id) {
        return insert(text.getBytes(StandardCharsets.UTF_8), id.getBytes(StandardCharsets.UTF_8), NOW);
    }

    /** Checks a document and changes nothing. */
    public Verdict query(byte[] text, byte[] id, long time) {
        return call(pointer -> check(pointer, text, id, time, false));
    }

    /** Removes the kept documents with this id, and counts them. */
    public long remove(byte[] id) {
        return call(pointer -> remove(pointer, id));
    }

    /** The number of kept documents. */
    public long size() {
        return call(Stream::size);
    }

    /** Writes the stream to a file, which appears when it is complete. */
    public void save(String path) {
        byte[] bytes = path.getBytes(StandardCharsets.UTF_8);
        call(pointer -> {
            save(pointer, bytes);
            return null;
        });
    }

    @Override
    void free(long pointer) {
        release(pointer);
    }

    private static long begin(String json) {
        long settings = Lookalike.read(json.getBytes(StandardCharsets.UTF_8));
        try {
            return create(settings);
        } finally {
            Lookalike.release(settings);
        }
    }

    private static native long create(long settings);

    private static native long open(byte[] path);

    private static native void release(long pointer);

    private static native Verdict check(long pointer, byte[] text, byte[] id, long time, boolean insert);

    private static native long remove(long pointer, byte[] id);

    private static native long size(long pointer);

    private static native void save(long pointer, byte[] path);
}
