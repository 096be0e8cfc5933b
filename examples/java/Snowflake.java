import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;

/** Reads the time of keys of a layout, as SELECT snowflake_database_layout() returns it. It never changes, so ask once. */
public final class Snowflake {
    private static final Map<String, Long> MICROS = Map.of("s", 1_000_000L, "ms", 1000L, "us", 1L);

    private Instant epoch;
    private long tickMicros;
    private int shift;

    /** Such as "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z". */
    public Snowflake(String layout) {
        for (String word : layout.split(" ")) {
            String[] pair = word.split("=");
            switch (pair[0]) {
                case "epoch" -> epoch = Instant.parse(pair[1]);
                case "tick" -> {
                    String unit = pair[1].replaceAll("[0-9]", "");
                    tickMicros = Long.parseLong(pair[1].replace(unit, "")) * MICROS.get(unit);
                }
                case "timestamp" -> {}
                default -> shift += Integer.parseInt(pair[1]);
            }
        }
    }

    /** When the key was made, without the database. */
    public Instant createdAt(long key) {
        return epoch.plus((key >> shift) * tickMicros, ChronoUnit.MICROS);
    }
}
