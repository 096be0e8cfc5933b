import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with JDBC alone. */
public final class JdbcOrders {
    private JdbcOrders() {}

    /** Adds an order and returns its key. */
    public static long add(Connection connection, String item, int quantity) throws SQLException {
        String query = "INSERT INTO orders (item, quantity) VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(query, new String[] {"id"})) {
            statement.setString(1, item);
            statement.setInt(2, quantity);
            statement.executeUpdate();
            try (ResultSet keys = statement.getGeneratedKeys()) {
                keys.next();
                return keys.getLong(1);
            }
        }
    }

    /** Adds orders by one statement. Returns their keys in the same order. */
    public static List<Long> addMany(Connection connection, String[] items, Integer[] quantities) throws SQLException {
        String query = "INSERT INTO orders (item, quantity)"
                + " SELECT item, quantity FROM unnest(?::text[], ?::int[]) WITH ORDINALITY AS o (item, quantity, n)"
                + " ORDER BY n RETURNING id";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            statement.setArray(1, connection.createArrayOf("text", items));
            statement.setArray(2, connection.createArrayOf("int", quantities));
            List<Long> keys = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    keys.add(rows.getLong(1));
                }
            }
            keys.sort(null); // They rise in the order in which they are made.
            return keys;
        }
    }
}
