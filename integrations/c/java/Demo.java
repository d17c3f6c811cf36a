import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import lookalike.Lookalike;
import lookalike.LookalikeException;
import lookalike.Stream;
import lookalike.Verdict;

/**
 * Works on standard input with the settings of the second argument.
 *
 * <pre>
 * stream    rows of id, seconds since 1970 (or nothing) and text: id, kept id, similarity and method of each duplicate
 * sketch    texts: the 128 bits of the fingerprint and the slots of the signature of each
 * compare   two texts: the JSON of their comparison
 * check     rows as above, inserted by four threads: how many are kept, and what is said of wrong calls
 * speed     rows as above: inserts a second
 * </pre>
 */
public final class Demo {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private record Row(byte[] id, long time, byte[] text) {
        static Row read(String line) {
            String[] fields = line.split("\t", 3);
            long time = fields[1].isEmpty() ? Stream.NOW : Long.parseLong(fields[1]) * 1_000_000;
            return new Row(bytes(fields[0]), time, bytes(fields[2]));
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> lines = input.lines().collect(Collectors.toList());
        try {
            switch (arguments[0]) {
                case "stream" -> printVerdicts(arguments[1], lines);
                case "sketch" -> printSketches(arguments[1], lines);
                case "compare" -> printComparison(arguments[1], lines);
                case "check" -> checkThreads(arguments[1], lines);
                default -> measureSpeed(arguments[1], lines);
            }
        } catch (LookalikeException error) {
            System.err.println("error: " + error.getMessage());
            System.exit(2);
        }
        OUT.flush();
    }

    private static void printVerdicts(String settings, List<String> lines) {
        try (Stream stream = new Stream(settings)) {
            for (String line : lines) {
                Row row = Row.read(line);
                Verdict verdict = stream.insert(row.text, row.id, row.time);
                if (verdict.isDuplicate()) {
                    OUT.print(new String(row.id, StandardCharsets.UTF_8) + "\t" + verdict.keptId() + "\t");
                    OUT.print(verdict.similarity() + "\t" + verdict.method() + "\n");
                }
            }
        }
    }

    private static void printSketches(String settings, List<String> lines) {
        try (Lookalike lookalike = new Lookalike(settings)) {
            for (String line : lines) {
                long[] fingerprint = lookalike.simhash(bytes(line));
                int[] signature = lookalike.minhash(bytes(line));
                StringJoiner slots = new StringJoiner(" ");
                for (int slot : signature == null ? new int[0] : signature) {
                    slots.add(Integer.toUnsignedString(slot));
                }
                OUT.print(fingerprint == null ? "-" : String.format("%016x%016x", fingerprint[1], fingerprint[0]));
                OUT.print("\t" + slots + "\n");
            }
        }
    }

    private static void printComparison(String settings, List<String> lines) throws IOException {
        try (Lookalike lookalike = new Lookalike(settings)) {
            OUT.write(lookalike.compare(bytes(lines.get(0)), bytes(lines.get(1))));
        }
    }

    private static void checkThreads(String settings, List<String> lines) throws InterruptedException {
        Stream stream = new Stream(settings);
        List<Thread> threads = Collections.nCopies(4, lines).stream().map(all -> new Thread(() -> insertAll(stream, all))).toList();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        OUT.println(stream.size());
        stream.close();
        printRefusal(() -> stream.size());
        try (Stream other = new Stream(settings)) {
            printRefusal(() -> other.insert(null, bytes("id"), Stream.NOW));
            printRefusal(() -> other.insert(new byte[] {-1}, null, Stream.NOW));
        }
        printRefusal(() -> new Stream("{\"threshold\": 7}").close());
    }

    private static void insertAll(Stream stream, List<String> lines) {
        lines.stream().map(Row::read).forEach(row -> stream.insert(row.text, row.id, row.time));
    }

    private static void printRefusal(Runnable call) {
        try {
            call.run();
        } catch (LookalikeException | IllegalStateException error) {
            OUT.println(error.getMessage());
        }
    }

    private static void measureSpeed(String settings, List<String> lines) {
        List<Row> rows = lines.stream().map(Row::read).collect(Collectors.toList());
        try (Stream stream = new Stream(settings)) {
            long begin = System.nanoTime();
            rows.forEach(row -> stream.insert(row.text, row.id, row.time));
            OUT.println(Math.round(rows.size() * 1e9 / (System.nanoTime() - begin)));
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
