-- The tables with triggers that may wait for the end of a transaction, as those of constraints do.
SELECT DISTINCT tgrelid FROM pg_trigger WHERE tgdeferrable
