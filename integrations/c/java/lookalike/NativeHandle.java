package lookalike;

import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.LongFunction;

/** An object of the library. It is freed by {@link #close}, which waits for calls of other threads. */
abstract class NativeHandle implements AutoCloseable {
    static {
        System.loadLibrary("lookalike_jni");
    }

    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private long pointer;

    NativeHandle(long pointer) {
        this.pointer = pointer;
    }

    /** Calls the library. Any number of threads can do so at once. */
    final <T> T call(LongFunction<T> function) {
        lock.readLock().lock();
        try {
            if (pointer == 0) {
                throw new IllegalStateException(getClass().getSimpleName() + " is closed: create another one");
            }
            return function.apply(pointer);
        } finally {
            lock.readLock().unlock();
        }
    }

    abstract void free(long pointer);

    @Override
    public final void close() {
        lock.writeLock().lock();
        try {
            if (pointer != 0) {
                free(pointer);
            }
            pointer = 0;
        } finally {
            lock.writeLock().unlock();
        }
    }
}
