-- What shows that no row can be written into a table ($1) with a key ($2), by the defaults or as a copy of another row: the columns that
-- have to be given; the unique indexes for which a copy is the row itself; and whether PostgreSQL knows that there is no row.
WITH copied AS (
    SELECT attnum FROM pg_attribute
    WHERE attrelid = $1 AND attnum > 0 AND attnum <> $2 AND NOT attisdropped AND attgenerated = '' AND attidentity = '' AND attnotnull
)
SELECT
    ARRAY(
        SELECT quote_ident(attname) FROM pg_attribute a JOIN copied USING (attnum) JOIN pg_type t ON t.oid = atttypid
        WHERE attrelid = $1 AND NOT atthasdef AND typdefault IS NULL
            -- One that runs before the row may fill it in.
            AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgtype & 7 = 7)
        ORDER BY attnum),
    ARRAY(
        SELECT quote_ident(i.relname) FROM pg_index x JOIN pg_class i ON i.oid = indexrelid
        WHERE indrelid = $1 AND indisunique AND indisready AND indpred IS NULL AND indexprs IS NULL
            AND (indkey::int2[])[0:indnkeyatts - 1] <@ ARRAY(SELECT attnum FROM copied)
        ORDER BY i.oid),
    pg_relation_size($1) = 0 AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = $1)
