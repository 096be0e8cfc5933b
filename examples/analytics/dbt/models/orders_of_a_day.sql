-- A condition on the time that is a range of IDs: it uses an index on the ID, zone maps, row groups.
{{ config(materialized='view') }}

select id
from {{ source('shop', 'orders') }}
where {{ snowflake_between('id', "timestamptz '" ~ var('since') ~ "'", "timestamptz '" ~ var('until') ~ "'") }}
