package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v4"
)

const published = 382304429472247813

var ctx = context.Background()

// connect makes the table anew. libpq's environment variables name the server.
func connect(t *testing.T) *pgx.Conn {
	conn, err := pgx.Connect(ctx, "")
	must(t, err)
	t.Cleanup(func() { conn.Close(ctx) })
	for _, statement := range []string{"DROP TABLE IF EXISTS orders", Schema} {
		_, err := conn.Exec(ctx, statement)
		must(t, err)
	}
	statements(t, conn)
	return conn
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, left, right interface{}) {
	t.Helper()
	if !reflect.DeepEqual(left, right) {
		t.Fatalf("%v is not %v", left, right)
	}
}

// statements returns how many INSERT statements the server has executed since the last call.
func statements(t *testing.T, conn *pgx.Conn) (count int64) {
	must(t, conn.QueryRow(ctx, "SELECT test.insert_statements()").Scan(&count))
	return count
}

func stored(t *testing.T, conn *pgx.Conn) (orders []Order) {
	rows, err := conn.Query(ctx, "SELECT id, item, quantity FROM orders ORDER BY quantity")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var order Order
		must(t, rows.Scan(&order.ID, &order.Item, &order.Quantity))
		orders = append(orders, order)
	}
	return orders
}

func TestTheKeyComesBack(t *testing.T) {
	conn, order := connect(t), Order{Item: "lamp", Quantity: 2}
	must(t, Add(ctx, conn, &order))
	equal(t, stored(t, conn), []Order{order})
	equal(t, order.ID > 1<<53, true)
}

func TestManyAreOneStatement(t *testing.T) {
	conn, orders := connect(t), make([]Order, 5000)
	for n := range orders {
		orders[n] = Order{Item: fmt.Sprint("item ", n), Quantity: int32(n)}
	}
	must(t, AddMany(ctx, conn, orders))
	equal(t, statements(t, conn), int64(1))
	equal(t, stored(t, conn), orders)
}

func TestKeysSurviveJSON(t *testing.T) {
	order := Order{ID: published, Item: "lamp", Quantity: 1}
	text, err := json.Marshal(order)
	must(t, err)
	equal(t, string(text), `{"id":"382304429472247813","item":"lamp","quantity":1}`)
	var read Order
	must(t, json.Unmarshal(text, &read))
	equal(t, read, order)
	equal(t, int64(float64(published)) == published, false) // a JavaScript number cannot hold it
}

func TestTimes(t *testing.T) {
	conn := connect(t)
	layout, err := ReadLayout(ctx, conn)
	must(t, err)
	must(t, AddMany(ctx, conn, make([]Order, 5000)))
	rows, err := conn.Query(ctx, "SELECT id, snowflake_timestamp(id) FROM orders")
	must(t, err)
	for rows.Next() {
		var key int64
		var at time.Time
		must(t, rows.Scan(&key, &at))
		equal(t, layout.Time(key), at.UTC())
	}
	must(t, rows.Err())
}

func TestTheRowsOfADay(t *testing.T) {
	conn := connect(t)
	layout, err := ReadLayout(ctx, conn)
	must(t, err)
	since := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	until := since.AddDate(0, 0, 1)
	var keys []int64
	for _, at := range []time.Time{since.Add(-10 * time.Millisecond), since, until.Add(-10 * time.Millisecond), until} {
		keys = append(keys, layout.MinID(at)+5)
		_, err := conn.Exec(ctx, "INSERT INTO orders VALUES ($1, 'lamp', 1)", layout.MinID(at)+5)
		must(t, err)
	}
	found, err := Between(ctx, conn, layout, since, until)
	must(t, err)
	equal(t, found, keys[1:3])
}

// As the library has them, also at the ends.
func TestLayouts(t *testing.T) {
	conn := connect(t)
	rows, err := conn.Query(ctx, `
		SELECT name, layout, id, snowflake_timestamp(id, name), snowflake_min_id(snowflake_timestamp(id, name) + shift, name),
		       snowflake_timestamp(id, name) + shift
		FROM snowflake_layouts(), pg_catalog.unnest(ARRAY[0, 1, 382304429472247813 >> 10, snowflake_max_id('infinity', name)]) AS id,
		     pg_catalog.unnest(ARRAY['-1 us', '0 us', '1 us']::interval[]) AS shift`)
	must(t, err)
	for rows.Next() {
		var name, text string
		var id, lowest int64
		var at, near time.Time
		must(t, rows.Scan(&name, &text, &id, &at, &lowest, &near))
		layout, err := ParseLayout(text)
		must(t, err)
		equal(t, layout.Time(id), at.UTC())
		equal(t, layout.MinID(near), lowest)
	}
	must(t, rows.Err())
	if _, err := ParseLayout("timestamp=x"); err == nil {
		t.Fatal("no error")
	}
}
