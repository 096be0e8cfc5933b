package orders

import (
	"testing"

	"github.com/jackc/pgtype"
	"github.com/jackc/pgx/v4"
)

// What pgx makes of snowflake_id: text, until it is told.
func TestSnowflakeID(t *testing.T) {
	conn, key := connect(t), int64(published)
	exec := func(query string, arguments ...interface{}) {
		t.Helper()
		_, err := conn.Exec(ctx, query, arguments...)
		must(t, err)
	}
	query, columns := "SELECT id FROM typed_orders WHERE id = $1", []string{"id"}
	copyKey := func(key int64) error {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"typed_orders"}, columns, pgx.CopyFromRows([][]interface{}{{key}}))
		return err
	}
	exec("CREATE TEMPORARY TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)")
	exec("INSERT INTO typed_orders VALUES ($1, $2)", key, "382304429472247813")
	var number int64
	var text string
	must(t, conn.QueryRow(ctx, query, key).Scan(&text))
	equal(t, text, "382304429472247813")
	equal(t, conn.QueryRow(ctx, query, key).Scan(&number) != nil, true)
	equal(t, copyKey(key+1) != nil, true)

	var oid uint32
	must(t, conn.QueryRow(ctx, "SELECT 'snowflake_id'::regtype::oid").Scan(&oid))
	conn.ConnInfo().RegisterDataType(pgtype.DataType{Value: &pgtype.Int8{}, Name: "snowflake_id", OID: oid})
	must(t, copyKey(key+1))
	exec("INSERT INTO typed_orders VALUES ($1, $2)", key+2, 5)
	must(t, conn.QueryRow(ctx, query, key+2).Scan(&number))
	equal(t, number, key+2)
}
