import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;

/** What JDBC makes of snowflake_id: getLong() reads it, getObject() returns text in a PGobject, and getObject(…, Long.class) fails. */
class WithJdbc {
    static final long KEY = 382304429472247813L;

    static void check(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    static boolean isRefused(ResultSet row) {
        try {
            row.getObject(1, Long.class);
            return false;
        } catch (SQLException refused) {
            return true;
        }
    }

    public static void main(String[] arguments) throws Exception {
        var url = "jdbc:postgresql://%s:%s/%s?user=%s"
                .formatted(System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"), System.getenv("PGUSER"));
        try (Connection connection = DriverManager.getConnection(url); var statement = connection.createStatement()) {
            statement.execute("CREATE TEMPORARY TABLE t (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)");
            try (var insert = connection.prepareStatement("INSERT INTO t VALUES (?, ?)")) {
                insert.setLong(1, KEY);
                insert.setLong(2, KEY);
                insert.executeUpdate();
            }
            // More often than the driver needs to prefer the binary form.
            try (var query = connection.prepareStatement("SELECT id FROM t WHERE id = ?")) {
                for (int n = 0; n < 12; n++) {
                    query.setLong(1, KEY);
                    try (ResultSet row = query.executeQuery()) {
                        check(row.next() && row.getLong(1) == KEY, "getLong");
                        check(isRefused(row), "getObject of a class");
                        check(row.getObject(1).toString().equals(Long.toString(KEY)), "getObject");
                    }
                }
            }
            try (var insert = connection.prepareStatement("INSERT INTO t DEFAULT VALUES", new String[] {"id"})) {
                insert.executeUpdate();
                var keys = insert.getGeneratedKeys();
                check(keys.next() && keys.getLong(1) > KEY / 2, "getGeneratedKeys");
            }
        }
        System.out.println("seen: jdbc");
    }
}
