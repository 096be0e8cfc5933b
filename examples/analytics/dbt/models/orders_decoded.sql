-- What IDs say, as columns. A run reads the IDs of the last hour once more, and what came since: a transaction that was open during
-- the last run may have older IDs than rows that were read.
{{ config(materialized='incremental', unique_key='id', incremental_strategy='delete+insert') }}

select
    id,
    {{ snowflake_timestamp('id') }} as created_at,
    {{ snowflake_datacenter('id') }} as datacenter,
    {{ snowflake_worker('id') }} as worker,
    {{ snowflake_sequence('id') }} as sequence
from {{ source('shop', 'orders') }}
{% if is_incremental() %}
where id >= {{ snowflake_min_id("(select max(created_at) - interval '1 hour' from " ~ this ~ ")") }}
{% endif %}
