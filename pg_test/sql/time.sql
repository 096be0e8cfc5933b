-- Time from IDs: age.
SET datestyle = ISO;
CREATE EXTENSION pg_snowflake;

-- Age.
SELECT snowflake_age(snowflake_encode(now() - interval '90 s', 1)) BETWEEN interval '90 s' AND interval '90.002 s' AS age,
       snowflake_age(snowflake_encode(now() - interval '90 s', 1, 0, 1, 'twitter'), 'twitter') BETWEEN interval '90 s' AND interval '90.002 s' AS of_twitter,
       snowflake_age(NULL) IS NULL AS unknown;
