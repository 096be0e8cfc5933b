import java.io.Serializable;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayDeque;
import java.util.Queue;
import org.hibernate.HibernateException;
import org.hibernate.Session;
import org.hibernate.engine.SessionImplementor;
import org.hibernate.id.IdentifierGenerator;

/**
 * Keys from snowflake_next() before the INSERT, a block by each call, so that Hibernate can send INSERTs in batches. With
 * GenerationType.IDENTITY it sends each alone. What is left of a block is given up after a second, so that the time that
 * can be read from a key is that of the row.
 */
public class SnowflakeGenerator implements IdentifierGenerator {
    private static final int BLOCK = 100;
    private static final long LIFETIME_NANOS = 1_000_000_000;

    private final Queue<Long> keys = new ArrayDeque<>();
    private long claimedAt;

    @Override
    public synchronized Serializable generate(SessionImplementor session, Object entity) throws HibernateException {
        if (keys.isEmpty() || System.nanoTime() - claimedAt > LIFETIME_NANOS) {
            keys.clear();
            ((Session) session).doWork(this::claim);
            claimedAt = System.nanoTime();
        }
        return keys.remove();
    }

    private void claim(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT snowflake_next(" + BLOCK + ")")) {
            while (rows.next()) {
                keys.add(rows.getLong(1));
            }
        }
    }
}
