package lookalike;

import java.nio.charset.StandardCharsets;

/** A refused or failed call. The message names the value, the limit and the place. */
public final class LookalikeException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The {@code lookalike_status} of the call. */
    public final int status;

    LookalikeException(byte[] message, int status) {
        super(new String(message, StandardCharsets.UTF_8));
        this.status = status;
    }
}
