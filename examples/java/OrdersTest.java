import com.fasterxml.jackson.databind.ObjectMapper;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.function.Consumer;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.Transaction;
import org.hibernate.cfg.Configuration;

/**
 * Tests the example on the server that PGHOST, PGPORT, PGUSER and PGDATABASE name, with keys of the types that are given, or of bigint
 * and of snowflake_id.
 */
public class OrdersTest {
    static final long PUBLISHED = 382304429472247813L;
    static final int MANY = 5000;
    // Batches become statements of up to 128 rows.
    static final String URL = "jdbc:postgresql://" + env("PGHOST") + ":" + env("PGPORT") + "/" + env("PGDATABASE")
            + "?reWriteBatchedInserts=true";

    final Connection connection = DriverManager.getConnection(URL, env("PGUSER"), "");
    final SessionFactory factory;

    OrdersTest(String keys) throws SQLException {
        execute("DROP TABLE IF EXISTS orders");
        execute("CREATE TABLE orders (id " + keys + " PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)");
        factory = new Configuration()
                .addAnnotatedClass(Order.class)
                .setProperty("hibernate.connection.url", URL)
                .setProperty("hibernate.connection.username", env("PGUSER"))
                .setProperty("hibernate.connection.password", "")
                .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
                .setProperty("hibernate.jdbc.batch_size", "1000")
                .buildSessionFactory();
    }

    public static void main(String[] arguments) throws Exception {
        List<String> types = arguments.length > 0 ? List.of(arguments) : List.of("bigint", "snowflake_id");
        for (String keys : types) {
            OrdersTest test = new OrdersTest(keys);
            test.jdbc();
            test.hibernate();
            test.times();
            test.json();
            test.idType();
            test.factory.close();
            test.connection.close();
            System.out.println("5 tests passed with keys of " + keys);
        }
    }

    void jdbc() throws SQLException {
        long key = JdbcOrders.add(connection, "lamp", -1);
        equal(stored(), List.of(key + " lamp -1"));
        execute("TRUNCATE orders");

        String[] items = new String[MANY];
        Integer[] quantities = new Integer[MANY];
        for (int n = 0; n < MANY; n++) {
            items[n] = "item " + n;
            quantities[n] = n;
        }
        statements();
        List<Long> keys = JdbcOrders.addMany(connection, items, quantities);
        equal(statements(), 1L);
        List<String> expected = new ArrayList<>();
        for (int n = 0; n < MANY; n++) {
            expected.add(keys.get(n) + " item " + n + " " + n);
        }
        equal(stored(), expected);
        equal(new HashSet<>(keys).size(), MANY);
        execute("TRUNCATE orders");
    }

    void hibernate() throws SQLException {
        Order lamp = new Order("lamp", -1);
        inTransaction(session -> session.save(lamp));
        equal(stored(), List.of(lamp.getId() + " lamp -1"));
        inTransaction(session -> equal(((Order) session.get(Order.class, lamp.getId())).getItem(), "lamp"));
        execute("TRUNCATE orders");

        statements();
        List<Order> orders = new ArrayList<>();
        inTransaction(session -> {
            for (int n = 0; n < MANY; n++) {
                Order order = new Order("item " + n, n);
                session.save(order);
                orders.add(order);
            }
        });
        // 1,000 rows are 7 statements of 128, and one each of 64, 32 and 8.
        equal(statements(), 50L);
        List<String> expected = new ArrayList<>();
        for (Order order : orders) {
            expected.add(order.getId() + " " + order.getItem() + " " + order.getQuantity());
        }
        equal(stored(), expected);
    }

    void json() throws Exception {
        execute("TRUNCATE orders");
        execute("INSERT INTO orders VALUES (" + PUBLISHED + ", 'lamp', 1)");
        ObjectMapper mapper = new ObjectMapper();
        inTransaction(session -> {
            Order lamp = (Order) session.get(Order.class, PUBLISHED);
            try {
                String text = mapper.writeValueAsString(lamp);
                equal(text, "{\"id\":\"" + PUBLISHED + "\",\"item\":\"lamp\",\"quantity\":1}");
                equal(mapper.readValue(text, Order.class).getId(), PUBLISHED);
            } catch (java.io.IOException error) {
                throw new AssertionError(error);
            }
        });
        equal((long) (double) PUBLISHED == PUBLISHED, false); // a JavaScript number cannot hold it
    }

    void times() throws SQLException {
        Snowflake standard = new Snowflake("timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z");
        equal(standard.createdAt(PUBLISHED), Instant.parse("2026-11-20T23:01:18.859Z"));
        Snowflake layout = layout();
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT id, snowflake_timestamp(id) FROM orders")) {
            int count = 0;
            for (; rows.next(); count++) {
                equal(layout.createdAt(rows.getLong(1)), rows.getTimestamp(2).toInstant());
            }
            equal(count, MANY);
        }
    }

    /** What JDBC makes of snowflake_id: getLong() reads it, getObject() returns text in a PGobject, and getObject(…, Long.class) fails. */
    void idType() throws SQLException {
        execute("CREATE TEMPORARY TABLE typed_orders"
                + " (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)");
        try (var insert = connection.prepareStatement("INSERT INTO typed_orders VALUES (?, ?)")) {
            insert.setLong(1, PUBLISHED);
            insert.setLong(2, PUBLISHED);
            insert.executeUpdate();
        }
        // More often than the driver needs to prefer the binary form.
        try (var query = connection.prepareStatement("SELECT id FROM typed_orders WHERE id = ?")) {
            for (int n = 0; n < 12; n++) {
                query.setLong(1, PUBLISHED);
                try (ResultSet row = query.executeQuery()) {
                    row.next();
                    equal(row.getLong(1), PUBLISHED);
                    equal(row.getObject(1).toString(), Long.toString(PUBLISHED));
                    try {
                        row.getObject(1, Long.class);
                        throw new AssertionError("getObject of a class");
                    } catch (SQLException refused) {
                        // As it should be.
                    }
                }
            }
        }
        try (var insert = connection.prepareStatement("INSERT INTO typed_orders DEFAULT VALUES", new String[] {"id"})) {
            insert.executeUpdate();
            ResultSet keys = insert.getGeneratedKeys();
            keys.next();
            equal(keys.getLong(1) > PUBLISHED / 2, true);
        }
    }

    void inTransaction(Consumer<Session> work) {
        Session session = factory.openSession();
        Transaction transaction = session.beginTransaction();
        work.accept(session);
        transaction.commit();
        session.close();
    }

    void execute(String query) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(query);
        }
    }

    /** How many INSERT statements the server has executed since the last call. */
    long statements() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT test.insert_statements()")) {
            rows.next();
            return rows.getLong(1);
        }
    }

    Snowflake layout() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT snowflake_database_layout()")) {
            rows.next();
            return new Snowflake(rows.getString(1));
        }
    }

    List<String> stored() throws SQLException {
        String query = "SELECT pg_catalog.concat(id::text, ' ', item, ' ', quantity::text) FROM orders ORDER BY quantity";
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(query)) {
            List<String> stored = new ArrayList<>();
            while (rows.next()) {
                stored.add(rows.getString(1));
            }
            return stored;
        }
    }

    static String env(String name) {
        return System.getenv(name);
    }

    static void equal(Object left, Object right) {
        if (!left.equals(right)) {
            throw new AssertionError(left + " is not " + right);
        }
    }
}
