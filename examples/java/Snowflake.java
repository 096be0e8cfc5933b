import java.time.Instant;

/** What can be read from a key of the default layout, without the database. */
public final class Snowflake {
    private static final long EPOCH = Instant.parse("2024-01-01T00:00:00Z").toEpochMilli();

    private Snowflake() {}

    /** When the key was made: its bits from the 22nd on are milliseconds since the epoch. */
    public static Instant createdAt(long key) {
        return Instant.ofEpochMilli(EPOCH + (key >> 22));
    }
}
