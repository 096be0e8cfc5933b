// Package orders has orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with pgx.
package orders

import (
	"context"
	"time"

	"github.com/jackc/pgx/v4"
)

// Schema is the table.
const Schema = `
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)`

// Order has its key as text in JSON: JavaScript reads a number of 63 bits as another number.
type Order struct {
	ID       int64  `json:"id,string"`
	Item     string `json:"item"`
	Quantity int32  `json:"quantity"`
}

// Add adds an order, which then has its key.
func Add(ctx context.Context, conn *pgx.Conn, order *Order) error {
	query := "INSERT INTO orders (item, quantity) VALUES ($1, $2) RETURNING id"
	return conn.QueryRow(ctx, query, order.Item, order.Quantity).Scan(&order.ID)
}

// AddMany adds orders by one statement. They then have their keys.
func AddMany(ctx context.Context, conn *pgx.Conn, orders []Order) error {
	items, quantities := make([]string, len(orders)), make([]int32, len(orders))
	for n, order := range orders {
		items[n], quantities[n] = order.Item, order.Quantity
	}
	// Keys rise in the order in which they are made.
	keys, err := scan(conn.Query(ctx, `
		WITH added AS (
			INSERT INTO orders (item, quantity)
			SELECT item, quantity FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS o (item, quantity, n) ORDER BY n
			RETURNING id)
		SELECT id FROM added ORDER BY id`, items, quantities))
	for n, key := range keys {
		orders[n].ID = key
	}
	return err
}

// ReadLayout returns the layout of the database's keys.
func ReadLayout(ctx context.Context, conn *pgx.Conn) (Layout, error) {
	var text string
	if err := conn.QueryRow(ctx, "SELECT snowflake_database_layout()").Scan(&text); err != nil {
		return Layout{}, err
	}
	return ParseLayout(text)
}

// Between returns the keys of a range of time, which is a range of the primary key.
func Between(ctx context.Context, conn *pgx.Conn, layout Layout, since, until time.Time) ([]int64, error) {
	query := "SELECT id FROM orders WHERE id >= $1 AND id < $2 ORDER BY id"
	return scan(conn.Query(ctx, query, layout.MinID(since), layout.MinID(until)))
}

func scan(rows pgx.Rows, err error) (keys []int64, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}
