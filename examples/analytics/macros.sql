-- Prints functions that read snowflake IDs in another system, with the layout of this database in them:
--
--   psql -XAtq -v system=duckdb -f macros.sql shop      (or clickhouse, dbt)
--
-- With -v layout=discord, or a layout in its notation, for IDs of others. Reads nothing but the layout, also on a standby.

-- The functions are those that this session finds; all else is PostgreSQL's own.
SELECT 'snowflake_layouts()'::pg_catalog.regprocedure::pg_catalog.oid AS function \gset
SET search_path = pg_catalog, pg_temp;
SELECT quote_ident(nspname) AS snowflake FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace WHERE p.oid = :function \gset
\if :{?layout}
\else
SELECT :snowflake.snowflake_database_layout() AS layout \gset
\endif
\if :{?system}
\else
\warn macros.sql: say for which system: psql -v system=duckdb (or clickhouse, dbt)
\quit
\endif

WITH words AS (
    SELECT split_part(word, '=', 1) AS name, split_part(word, '=', 2) AS value, n
    FROM coalesce((SELECT layout FROM :snowflake.snowflake_layouts() WHERE name = :'layout'), :'layout') AS notation,
         regexp_split_to_table(notation, ' ') WITH ORDINALITY AS word (word, n)
), fields AS (
    SELECT name, value::int AS width,
           -- The fields that follow stand below.
           coalesce(sum(value::int) OVER (ORDER BY n DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::int AS shift
    FROM words WHERE name NOT IN ('tick', 'epoch')
), layout AS (
    SELECT coalesce((SELECT substring(value FROM '^\d+')::bigint
                            * CASE substring(value FROM '\D+$') WHEN 's' THEN 1000000 WHEN 'ms' THEN 1000 ELSE 1 END
                     FROM words WHERE name = 'tick'), 1000) AS tick,
           (SELECT (extract(epoch FROM coalesce(max(value), '2024-01-01T00:00:00Z')::timestamptz) * 1000000)::bigint
            FROM words WHERE name = 'epoch') AS epoch,
           1::bigint << shift AS unit,
           (1::bigint << width) - 1 AS last_tick,
           ((1::bigint << width + shift - 1) - 1) * 2 + 1 AS highest
    FROM fields WHERE name = 'timestamp'
), times AS (
    SELECT name, to_char(timestamp 'epoch' + micros / 1000000 * interval '1 second' + micros % 1000000 * interval '1 microsecond',
                         'YYYY-MM-DD HH24:MI:SS.US+00') AS time
    FROM layout, LATERAL (VALUES ('epoch', epoch), ('last', epoch + last_tick * tick)) AS instant (name, micros)
), systems (system, part, no_part, template) AS (VALUES

('duckdb', '(id::BIGINT // {unit} % {size})::INTEGER', 'NULL::INTEGER', $template$
-- Layout: {layout}
-- Conditions on these read only what they must: snowflake_between(id, since, until), id >= snowflake_min_id(moment).
CREATE OR REPLACE MACRO snowflake_timestamp(id) AS make_timestamptz({epoch} + id::BIGINT // {unit} * {tick});
CREATE OR REPLACE MACRO snowflake_datacenter(id) AS {datacenter};
CREATE OR REPLACE MACRO snowflake_worker(id) AS {worker};
CREATE OR REPLACE MACRO snowflake_sequence(id) AS {sequence};
CREATE OR REPLACE MACRO snowflake_min_id(moment) AS CASE
    WHEN moment::TIMESTAMPTZ <= TIMESTAMPTZ '{epoch_time}' THEN 0::BIGINT
    WHEN moment::TIMESTAMPTZ > TIMESTAMPTZ '{last_time}' THEN 9223372036854775807
    ELSE (epoch_us(moment::TIMESTAMPTZ) - {epoch} + {tick} - 1) // {tick} * {unit} END;
CREATE OR REPLACE MACRO snowflake_max_id(moment) AS CASE
    WHEN moment::TIMESTAMPTZ < TIMESTAMPTZ '{epoch_time}' THEN (-1)::BIGINT
    WHEN moment::TIMESTAMPTZ >= TIMESTAMPTZ '{last_time}' THEN {highest}
    ELSE (epoch_us(moment::TIMESTAMPTZ) - {epoch}) // {tick} * {unit} + {unit} - 1 END;
CREATE OR REPLACE MACRO snowflake_max_id_before(moment) AS CASE
    WHEN moment::TIMESTAMPTZ <= TIMESTAMPTZ '{epoch_time}' THEN (-1)::BIGINT
    WHEN moment::TIMESTAMPTZ > TIMESTAMPTZ '{last_time}' THEN {highest}
    ELSE (epoch_us(moment::TIMESTAMPTZ) - {epoch} - 1) // {tick} * {unit} + {unit} - 1 END;
CREATE OR REPLACE MACRO snowflake_between(id, since, until) AS
    id >= snowflake_min_id(since) AND id <= snowflake_max_id_before(until);
$template$),

('clickhouse', 'toInt32(intDiv(toInt64(id), {unit}) % {size})', 'CAST(NULL, ''Nullable(Int32)'')', $template$
-- Layout: {layout}
-- Conditions on these use the primary key: snowflake_between(id, since, until), id >= snowflake_min_id(at).
CREATE OR REPLACE FUNCTION snowflake_timestamp AS (id) -> fromUnixTimestamp64Micro({epoch} + intDiv(toInt64(id), {unit}) * {tick}, 'UTC');
CREATE OR REPLACE FUNCTION snowflake_datacenter AS (id) -> {datacenter};
CREATE OR REPLACE FUNCTION snowflake_worker AS (id) -> {worker};
CREATE OR REPLACE FUNCTION snowflake_sequence AS (id) -> {sequence};
CREATE OR REPLACE FUNCTION snowflake_min_id AS (at) -> multiIf(
    toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) <= {epoch}, toInt64(0),
    toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) > {last}, toInt64(9223372036854775807),
    toInt64(intDiv(toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) - {epoch} + {tick} - 1, {tick}) * {unit}));
CREATE OR REPLACE FUNCTION snowflake_max_id AS (at) -> multiIf(
    toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) < {epoch}, toInt64(-1),
    toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) >= {last}, toInt64({highest}),
    toInt64(intDiv(toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) - {epoch}, {tick}) * {unit} + {unit} - 1));
CREATE OR REPLACE FUNCTION snowflake_max_id_before AS (at) -> multiIf(
    toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) <= {epoch}, toInt64(-1),
    toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) > {last}, toInt64({highest}),
    toInt64(intDiv(toUnixTimestamp64Micro(toDateTime64(at, 6, 'UTC')) - {epoch} - 1, {tick}) * {unit} + {unit} - 1));
CREATE OR REPLACE FUNCTION snowflake_between AS (id, since, until) ->
    id >= snowflake_min_id(since) AND id <= snowflake_max_id_before(until);
$template$),

('dbt', 'cast({{ snowflake_quotient(id, {unit}) }} % {size} as integer)', 'cast(null as integer)', $template$
{#- Layout: {layout}
    For PostgreSQL and what speaks its dialect, with or without the extension, and for DuckDB. Times are expressions of timestamptz. -#}
{% macro snowflake_timestamp(id) %}{{ return(adapter.dispatch('snowflake_timestamp')(id)) }}{% endmacro %}
{% macro default__snowflake_timestamp(id) -%}
    (timestamptz '1970-01-01 00:00:00+00'
        + ({epoch} + cast({{ id }} as bigint) / {unit} * {tick}) / 1000000 * interval '1 second'
        + ({epoch} + cast({{ id }} as bigint) / {unit} * {tick}) % 1000000 * interval '1 microsecond')
{%- endmacro %}
{% macro duckdb__snowflake_timestamp(id) -%}
    make_timestamptz({epoch} + cast({{ id }} as bigint) // {unit} * {tick})
{%- endmacro %}

{% macro snowflake_quotient(id, unit) %}{{ return(adapter.dispatch('snowflake_quotient')(id, unit)) }}{% endmacro %}
{% macro default__snowflake_quotient(number, unit) -%} cast({{ number }} as bigint) / {{ unit }} {%- endmacro %}
{% macro duckdb__snowflake_quotient(number, unit) -%} cast({{ number }} as bigint) // {{ unit }} {%- endmacro %}

{% macro snowflake_micros(at) %}{{ return(adapter.dispatch('snowflake_micros')(at)) }}{% endmacro %}
{% macro default__snowflake_micros(at) -%} cast(extract(epoch from {{ at }}) * 1000000 as bigint) {%- endmacro %}
{% macro duckdb__snowflake_micros(at) -%} epoch_us({{ at }}) {%- endmacro %}

{% macro snowflake_datacenter(id) -%} {datacenter} {%- endmacro %}
{% macro snowflake_worker(id) -%} {worker} {%- endmacro %}
{% macro snowflake_sequence(id) -%} {sequence} {%- endmacro %}

{% macro snowflake_min_id(at) -%}
    case when {{ at }} <= timestamptz '{epoch_time}' then 0
         when {{ at }} > timestamptz '{last_time}' then 9223372036854775807
         else {{ snowflake_quotient('(' ~ snowflake_micros(at) ~ ' - {epoch} + {tick} - 1)', {tick}) }} * {unit} end
{%- endmacro %}
{% macro snowflake_max_id(at) -%}
    case when {{ at }} < timestamptz '{epoch_time}' then -1
         when {{ at }} >= timestamptz '{last_time}' then {highest}
         else {{ snowflake_quotient('(' ~ snowflake_micros(at) ~ ' - {epoch})', {tick}) }} * {unit} + {unit} - 1 end
{%- endmacro %}
{% macro snowflake_max_id_before(at) -%}
    case when {{ at }} <= timestamptz '{epoch_time}' then -1
         when {{ at }} > timestamptz '{last_time}' then {highest}
         else {{ snowflake_quotient('(' ~ snowflake_micros(at) ~ ' - {epoch} - 1)', {tick}) }} * {unit} + {unit} - 1 end
{%- endmacro %}
{% macro snowflake_between(id, since, until) -%}
    {{ id }} >= {{ snowflake_min_id(since) }} and {{ id }} <= {{ snowflake_max_id_before(until) }}
{%- endmacro %}
$template$)

), parts AS (
    SELECT system, name, coalesce(replace(replace(part, '{unit}', (1::bigint << shift)::text), '{size}', (1::bigint << width)::text), no_part) AS expression
    FROM systems CROSS JOIN unnest('{datacenter, worker, sequence}'::text[]) AS name LEFT JOIN fields USING (name)
), filled AS (
    SELECT system, replace(replace(replace(template,
               '{datacenter}', max(expression) FILTER (WHERE name = 'datacenter')),
               '{worker}', max(expression) FILTER (WHERE name = 'worker')),
               '{sequence}', max(expression) FILTER (WHERE name = 'sequence')) AS template
    FROM systems JOIN parts USING (system) GROUP BY system, template
)
SELECT btrim(replace(replace(replace(replace(replace(replace(replace(replace(template,
           '{epoch_time}', (SELECT time FROM times WHERE name = 'epoch')),
           '{last_time}', (SELECT time FROM times WHERE name = 'last')),
           '{epoch}', epoch::text),
           '{tick}', tick::text),
           '{unit}', unit::text),
           '{last}', (epoch + last_tick * tick)::text),
           '{highest}', highest::text),
           '{layout}', (SELECT string_agg(name || '=' || value, ' ' ORDER BY n) FROM words)), E'\n')
FROM filled, layout WHERE system = :'system';
