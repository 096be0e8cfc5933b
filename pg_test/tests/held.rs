//! Which test holds what a document promises: each row, step and procedure of the pages of the book that operators follow. A new one
//! needs a test, and a line here.

use std::path::{Path, PathBuf};

/// What holds a row.
enum By {
    /// These tests, as `cargo test` names them: those of the target `main`; of others with `leases::`, `clusters::`, or the crate before. Or a
    /// script.
    Tests(&'static [&'static str]),
    /// No test, for this reason.
    Nobody(&'static str),
}

use By::{Nobody, Tests};

/// The rows of a document, by their first words, in order.
type Held = &'static [(&'static str, By)];

const LEASES: Held = &[
    (
        "Namespace.",
        Tests(&[
            "leases::faults::another_layout_in_the_namespace",
            "leases::forgotten::a_namespace_that_nobody_used_is_leased_from_at_once",
        ]),
    ),
    ("Numbers.", Tests(&["leases::servers::a_worker_that_the_configuration_names"])),
    (
        "Password.",
        Tests(&[
            "leases::faults::a_wrong_password",
            "leases::secrets::a_password_file_that_others_can_read_is_refused",
        ]),
    ),
    (
        "PostgreSQL",
        Tests(&[
            "registry::postgres::warnings_name_what_can_roll_it_back",
            "leases::single::a_worker_is_leased_listed_and_given_back",
            "registry::postgres_rights::a_registry_is_prepared_as_the_documentation_says",
        ]),
    ),
    ("etcd, version 3.4", Tests(&["leases::single::a_worker_is_leased_listed_and_given_back"])),
    ("Redis, version 5", Tests(&["registry::redis::warnings_name_settings_that_lose_changes"])),
    (
        "PostgreSQL with `synchronous_standby_names`",
        Tests(&[
            "leases::failover::a_standby_of_the_registry_is_promoted_while_the_old_primary_goes_on",
            "leases::failover::a_commit_whose_wait_was_cancelled_grants_nothing",
        ]),
    ),
    ("PostgreSQL without", Tests(&["leases::failover::there_is_a_warning_of_replicas_that_may_lag"])),
    (
        "etcd",
        Tests(&[
            "leases::failover::members_of_etcd_fail_one_after_the_other",
            "leases::failover::a_member_of_etcd_is_cut_off_from_the_others",
        ]),
    ),
    ("Redis, with `wait_replicas=1`", Tests(&["leases::failover::what_no_replica_has_received_is_no_renewal"])),
    ("Redis without", Tests(&["leases::failover::there_is_a_warning_of_replicas_that_may_lag"])),
    (
        "it starts",
        Tests(&[
            "leases::single::a_restart_has_the_same_worker_and_no_gap",
            "leases::servers::eight_servers_lease_at_once",
        ]),
    ),
    (
        "it starts with a clock",
        Tests(&[
            "leases::clocks::a_wrong_clock_at_the_start_takes_no_lease_by_the_time_of_the_registry",
            "leases::clocks::a_wrong_clock_at_the_start_takes_no_lease_by_the_leases_of_others",
            "core::lease::clocks::a_clock_that_is_far_ahead_at_the_start_is_believed_after_a_minute",
        ]),
    ),
    (
        "it is stopped",
        Tests(&[
            "leases::single::a_restart_has_the_same_worker_and_no_gap",
            "leases::single::a_worker_is_leased_listed_and_given_back",
        ]),
    ),
    (
        "a session crashes",
        Tests(&[
            "leases::single::the_crash_of_a_session_changes_nothing",
            "leases::single::the_crash_of_a_session_while_the_registry_is_away",
        ]),
    ),
    (
        "the server crashes, or is killed",
        Tests(&[
            "leases::single::a_server_that_was_killed_has_another_worker_at_once",
            "leases::servers::a_worker_that_the_configuration_names",
            "leases::servers::a_worker_is_used_again_when_its_lease_is_over",
            "leases::servers::a_cloned_machine_does_not_evict_the_original",
        ]),
    ),
    (
        "the registry is unreachable for less",
        Tests(&["leases::faults::an_outage_shorter_than_the_window_stops_nobody"]),
    ),
    ("for longer", Tests(&["leases::faults::an_outage_longer_than_the_window_stops_ids_until_it_is_over"])),
    ("the server is frozen", Tests(&["leases::servers::a_server_that_was_stopped_past_its_lease"])),
    ("a standby is promoted", Tests(&["leases::servers::a_promoted_standby_leases_a_worker_of_its_own"])),
    ("a running server is copied", Tests(&["leases::servers::a_copy_of_a_running_server"])),
    (
        "a machine is cloned",
        Tests(&[
            "leases::servers::a_cloned_machine_does_not_evict_the_original",
            "leases::servers::a_cloned_machine_leases_another_worker",
        ]),
    ),
    (
        "the registry has lost its data",
        Tests(&["leases::forgotten::a_server_that_runs_goes_on_and_the_layout_stays_guarded"]),
    ),
    ("all worker IDs are taken", Tests(&["leases::servers::all_workers_are_taken"])),
    (
        "the clock is wrong",
        Tests(&[
            "leases::forgotten::who_has_leased_before_waits_until_all_that_was_granted_is_over",
            "leases::clocks::a_worker_that_was_leased_a_year_ahead_is_free_after_a_rewind",
        ]),
    ),
    (
        "the namespace has no record",
        Tests(&[
            "leases::forgotten::who_has_leased_before_waits_until_all_that_was_granted_is_over",
            "leases::procedures::a_new_server_is_started_after_the_others_have_stored_their_leases_again",
            "leases::procedures::after_a_loss_whoever_has_no_lease_waits",
        ]),
    ),
    (
        "the record of its own worker ID",
        Tests(&[
            "leases::procedures::an_old_backup_of_the_registry_is_restored",
            "leases::faults::a_registry_that_was_wiped",
            "core::lease::losses::a_grant_that_is_over_is_not_stored_again",
        ]),
    ),
    (
        "it has no lease, and new leases are still unsafe",
        Tests(&[
            "leases::forgotten::who_has_leased_before_waits_until_all_that_was_granted_is_over",
            "leases::procedures::after_a_loss_whoever_has_no_lease_waits",
        ]),
    ),
    (
        "the namespace's record has another layout",
        Tests(&[
            "leases::procedures::after_a_loss_the_wait_is_eleven_minutes_and_another_layout_ends_with_the_lease",
            "leases::forgotten::a_server_that_runs_goes_on_and_the_layout_stays_guarded",
        ]),
    ),
];

const HOSTED: Held = &[
    (
        "IDs are distinct and rise",
        Tests(&["hosted::generator::sessions_at_once", "hosted::generator::pauses_between_all_steps"]),
    ),
    ("worker IDs", Tests(&["hosted::rights::everybody_makes_ids_and_nobody_else_changes_how"])),
    ("who may change", Tests(&["hosted::rights::everybody_makes_ids_and_nobody_else_changes_how"])),
    ("partitions of a table of another role", Tests(&["hosted::tables::partitions_of_a_table_of_somebody_else"])),
    (
        "sessions at once, rollbacks",
        Tests(&["hosted::generator::transactions_that_end_in_every_way", "hosted::generator::behind_pgbouncer"]),
    ),
    (
        "a cancel, a termination",
        Tests(&[
            "hosted::generator::cancels_and_terminations_at_every_point",
            "hosted::generator::timeouts_and_errors",
        ]),
    ),
    (
        "a crash or a failover",
        Tests(&[
            "hosted::generator::a_crash",
            "hosted::generator::a_crash_with_the_clock_set_back",
            "hosted::generator::a_standby_that_is_promoted_with_its_clock_back",
        ]),
    ),
    (
        "a dump that is restored into its own",
        Tests(&[
            "hosted::set_back::a_dump_that_is_restored_into_its_own_database",
            "hosted::set_back::sequences_that_their_owner_sets",
        ]),
    ),
    ("the clock goes back", Tests(&["hosted::generator::a_clock_that_goes_back"])),
    ("the clock stands still", Tests(&["hosted::generator::a_clock_that_stands_still"])),
    ("more IDs than ticks", Tests(&["hosted::generator::more_than_a_tick_has"])),
    ("the clock leaps forward", Tests(&["hosted::generator::a_clock_that_leaps"])),
    ("a copy by `CREATE DATABASE", Tests(&["hosted::generator::a_copy_of_the_database_needs_a_number_of_its_own"])),
    ("read-only transactions", Tests(&["hosted::generator::a_read_only_transaction", "hosted::plans::parallel_plans"])),
    (
        "dumps",
        Tests(&["hosted::dumps::to_the_library_and_back", "hosted::dumps::to_the_library_and_back_in_another_layout"]),
    ),
    (
        "conditions on the time",
        Tests(&["hosted::plans::ranges_of_time_use_the_index_of_the_key", "hosted::plans::partitions_are_pruned"]),
    ),
    (
        "of rows that are committed, with",
        Tests(&["hosted::generator::what_a_crash_loses", "hosted::generator::a_crash_with_the_clock_set_back"]),
    ),
    ("that a transaction returned", Tests(&["hosted::generator::what_a_crash_loses"])),
    ("of rows of transactions that were open", Tests(&["hosted::generator::what_a_crash_loses"])),
    (
        "of rows that were committed with `synchronous_commit = off`",
        Nobody("that is what PostgreSQL says of asynchronous commits"),
    ),
    (
        "that the new primary had not received",
        Tests(&["hosted::generator::a_standby_that_is_promoted_with_its_clock_back"]),
    ),
    (
        "if the clock, set back, is",
        Nobody("the clock of a server cannot be held in one tick; the test of dumps has other offsets"),
    ),
    ("a number of the sequence `number`", Tests(&["hosted::set_back::sequences_that_their_owner_sets"])),
    ("a dump made after a crash", Tests(&["hosted::set_back::crashes_and_upgrades_are_none"])),
    ("`ALTER SEQUENCE ... RESTART`", Nobody("that is what the owner of the functions does on purpose")),
    ("IDs that are in no column", Tests(&["hosted::set_back::rows_far_ahead_of_the_clock"])),
];

const EDITIONS: Held = &[
    ("Amazon RDS", Nobody("nothing was run there; pg_test/tle/run runs pg_tle")),
    ("Cloud SQL", Nobody("nothing was run there; hosted::grounds runs as such a role")),
    (
        "`snowflake_next()`, reading",
        Tests(&[
            "hosted::generator::ids_have_the_time_of_the_clock",
            "hosted::differences::decoding_and_bounds_in_random_layouts",
            "hosted::differences::text_forms",
            "hosted::grounds::the_same_work_everywhere",
        ]),
    ),
    ("`snowflake_between()`", Tests(&["hosted::plans::ranges_of_time_use_the_index_of_the_key"])),
    ("conditions on", Tests(&["hosted::plans::conditions_on_the_time"])),
    (
        "partitions: create",
        Tests(&[
            "hosted::differences::partitions",
            "hosted::differences::upkeep_of_partitions",
            "hosted::tables::partitions_of_a_table_of_somebody_else",
        ]),
    ),
    ("`snowflake_preflight()`", Tests(&["hosted::differences::preflight_in_random_layouts"])),
    (
        "`snowflake_adopt()`",
        Tests(&[
            "hosted::moving::there_and_back_as_by_the_library",
            "hosted::moving::what_becomes_wider_is_for_the_library_or_for_stages",
            "hosted::moving::in_stages_without_the_library",
        ]),
    ),
    ("`snowflake_adopt_all()`", Tests(&["hosted::differences::the_page_has_each_difference"])),
    ("`snowflake_id`", Tests(&["hosted::differences::the_type_is_a_domain"])),
    ("leases", Tests(&["hosted::differences::the_page_has_each_difference"])),
    (
        "`snowflake_server_layout()`",
        Tests(&[
            "hosted::differences::the_page_has_each_difference",
            "hosted::rights::everybody_makes_ids_and_nobody_else_changes_how",
        ]),
    ),
    ("settings", Tests(&["hosted::generator::a_clock_that_goes_back", "hosted::generator::more_than_a_tick_has"])),
    ("`snowflake_rewind()`", Tests(&["hosted::differences::the_page_has_each_difference"])),
    ("`snowflake_status()`", Tests(&["hosted::differences::the_same_functions_but_for_those_that_are_listed"])),
    ("[segments]", Tests(&["hosted::differences::the_page_has_each_difference"])),
    ("a dump restored", Tests(&["hosted::set_back::a_dump_that_is_restored_into_its_own_database"])),
];

const PROMISE: Held = &[
    (
        "`kill -9`, power loss",
        Tests(&[
            "crash::the_postmaster_is_killed_and_the_clock_set_back",
            "crash::ids_that_left_without_a_row_are_not_given_again",
        ]),
    ),
    ("crash of one session", Tests(&["crash::a_session_is_killed_and_shared_memory_made_anew"])),
    (
        "clean shutdown and start",
        Tests(&["crash::the_server_is_stopped_and_started_at_once", "origin::a_clean_stop_gives_back"]),
    ),
    (
        "clock steps and leaps",
        Tests(&["crash::the_clock_jumps_for_a_minute", "leap::for_longer_than_a_minute_it_is_believed"]),
    ),
    ("several databases", Tests(&["server::ten_databases_crash_in_any_way_and_go_on_in_any_order"])),
    (
        "DROP and CREATE EXTENSION",
        Tests(&["crash::the_extension_is_dropped_and_created_under_load", "server::dropped_restarted_and_created"]),
    ),
    ("CREATE DATABASE ... TEMPLATE", Tests(&["copies::a_copy_of_a_database_and_its_template_crash_together"])),
    (
        "failover to a standby, for IDs in rows",
        Tests(&["failover::asynchronous", "standbys::a_standby_is_promoted_with_the_clock_back"]),
    ),
    (
        "failover to a synchronous standby",
        Tests(&[
            "failover::synchronous",
            "synchronous::a_level_that_is_raised_holds_after_a_promotion",
            "synchronous::reset_lets_waiting_sessions_go",
        ]),
    ),
    ("the old primary rewound", Tests(&["standbys::a_primary_is_rewound_and_promoted_again"])),
    (
        "base backup, point-in-time recovery",
        Tests(&[
            "backup::a_base_backup_goes_on_with_the_clock_back",
            "backup::a_recovery_to_a_point_in_time_goes_on_with_the_clock_back",
        ]),
    ),
    (
        "`pg_dump` and restore",
        Tests(&[
            "backup::a_custom_dump_is_restored_with_the_clock_back",
            "copies::a_dump_of_minutes_ahead_waits_for_its_own_time_alone",
        ]),
    ),
    (
        "a restore into a database that makes IDs",
        Tests(&[
            "restores::a_database_in_use_keeps_its_layout_and_time",
            "restores::a_record_that_is_set_unseen_does_not_count_and_is_repaired",
        ]),
    ),
    ("`pg_upgrade`", Tests(&["backup::an_upgraded_server_goes_on_with_the_clock_back"])),
    (
        "`setval` on the copy",
        Tests(&["copies::a_copy_set_back_repeats_nothing", "copies::a_copy_set_by_hand_stops_no_other_database"]),
    ),
    (
        "the origin dropped by hand",
        Tests(&["origin::dropped_while_the_server_runs_it_comes_back_with_what_was_reserved"]),
    ),
    ("IDs without a row on an asynchronous standby", Tests(&["failover::asynchronous"])),
    (
        "IDs made after a base backup's end",
        Tests(&[
            "backup::a_base_backup_goes_on_with_the_clock_right",
            "backup::a_recovery_to_a_point_in_time_goes_on_with_the_clock_right",
        ]),
    ),
    (
        "A dump of a server with this worker ID whose clock was ahead",
        Tests(&["restores::a_database_in_use_keeps_its_layout_and_time"]),
    ),
    (
        "IDs of one session with `synchronous_commit`",
        Tests(&["synchronous::a_level_that_is_raised_counts_for_the_next_id"]),
    ),
    (
        "Two servers with one worker ID",
        Tests(&["procedures::a_standby_is_promoted_beside_its_primary", "leases::servers::a_copy_of_a_running_server"]),
    ),
    (
        "Servers whose registry forgets",
        Tests(&["leases::procedures::a_new_server_is_started_after_the_others_have_stored_their_leases_again"]),
    ),
    (
        "A worker ID that is used elsewhere too early",
        Tests(&["procedures::a_number_that_is_handed_over_without_waiting_repeats_ids"]),
    ),
    (
        "Unique IDs across databases",
        Tests(&["origin::missing_at_a_start_it_comes_back_and_each_database_goes_on_above_its_own"]),
    ),
    (
        "`snowflake_rewind()` below an ID",
        Tests(&["procedures::a_rewind_below_an_id_that_another_database_keeps_repeats_it"]),
    ),
    (
        "Rows that arrive without the sequences",
        Tests(&["clusters::streaming::a_standby_that_becomes_a_subscriber_needs_another_worker_id"]),
    ),
    ("Storage that loses the WAL", Nobody("no test can have such storage")),
];

const SERVERS: Held = &[
    ("configuration", Tests(&["leases::procedures::before_going_live"])),
    (
        "needs",
        Tests(&[
            "leases::single::a_worker_is_leased_listed_and_given_back",
            "leases::single::without_a_registry_there_is_none",
        ]),
    ),
    (
        "a copy, or an old primary",
        Tests(&[
            "leases::servers::a_copy_of_a_running_server",
            "leases::servers::a_cloned_machine_does_not_evict_the_original",
            "procedures::a_standby_is_promoted_beside_its_primary",
        ]),
    ),
    (
        "registry unreachable for longer",
        Tests(&["leases::faults::an_outage_longer_than_the_window_stops_ids_until_it_is_over"]),
    ),
    (
        "after a crash",
        Tests(&[
            "leases::single::a_server_that_was_killed_has_another_worker_at_once",
            "leases::servers::a_worker_that_the_configuration_names",
            "crash::the_postmaster_is_killed_and_the_clock_set_back",
        ]),
    ),
    (
        "the registry has lost its data",
        Tests(&[
            "leases::forgotten::a_server_that_runs_goes_on_and_the_layout_stays_guarded",
            "leases::procedures::after_a_loss_the_wait_is_eleven_minutes_and_another_layout_ends_with_the_lease",
        ]),
    ),
    ("[a single server]", Tests(&["procedures::a_standby_is_promoted_beside_its_primary"])),
    (
        "[Patroni]",
        Tests(&[
            "clusters::patroni::failovers::with_leases",
            "clusters::patroni::failovers::with_a_worker_id_of_each_member",
            "clusters::patroni::failovers::one_worker_id_for_all_repeats_ids_in_a_split_brain",
        ]),
    ),
    ("[Kubernetes]", Nobody("there is no Kubernetes here; the page says that neither was run")),
    (
        "[shards and active-active]",
        Tests(&[
            "clusters::active_active::two_servers_write_one_table",
            "clusters::active_active::three_servers_write_one_table",
        ]),
    ),
    (
        "behind [PgBouncer]",
        Tests(&[
            "clusters::pgbouncer::a_session_for_each_transaction",
            "clusters::pgbouncer::a_session_for_each_statement",
            "clusters::pgbouncer::prepared_statements",
        ]),
    ),
    (
        "Give the old server another worker ID",
        Tests(&["worker::a_reload_takes_effect_within_a_second_in_a_statement_that_runs"]),
    ),
    (
        "Read `previous_worker_id`",
        Tests(&[
            "worker::without_a_worker_a_statement_that_runs_ends_and_the_status_says_until_when_the_number_is_in_use",
        ]),
    ),
    (
        "Wait until the new server is past that time",
        Tests(&[
            "worker::two_servers_swap_their_workers_under_load",
            "worker::a_number_is_free_once_an_id_of_the_new_server_is_past_it",
            "procedures::a_number_that_is_handed_over_without_waiting_repeats_ids",
        ]),
    ),
];

const PATRONI: Held = &[
    ("A failover", Tests(&["clusters::patroni::failovers::with_leases"])),
    ("If etcd is away", Tests(&["clusters::patroni::failovers::in_failsafe_mode_ids_last_as_long_as_the_lease"])),
    (
        "Changes of the configuration",
        Tests(&[
            "clusters::patroni::failovers::with_leases",
            "clusters::patroni::failovers::with_a_worker_id_of_each_member",
            "clusters::patroni::failovers::one_worker_id_for_all_repeats_ids_in_a_split_brain",
        ]),
    ),
    ("From numbers to leases.", Tests(&["leases::procedures::from_numbers_to_leases"])),
    (
        "Layout, epoch or registry.",
        Tests(&["clusters::patroni::configuration::values_reach_all_members_and_a_wrong_one_is_found_before"]),
    ),
    ("Passwords", Tests(&["leases::faults::a_wrong_password"])),
];

const ACTIVE_ACTIVE: Held = &[
    ("Independent shards", Tests(&["leases::procedures::before_going_live"])),
    (
        "Active-active",
        Tests(&[
            "clusters::active_active::two_servers_write_one_table",
            "clusters::active_active::three_servers_write_one_table",
            "replicated::rows_of_partitions_that_the_job_makes_and_drops",
        ]),
    ),
    ("Add a server", Tests(&["clusters::active_active::a_server_joins_while_the_others_are_written_to"])),
    (
        "On `a`: `ALTER SUBSCRIPTION",
        Tests(&[
            "clusters::active_active::a_server_joins_while_the_others_are_written_to",
            "clusters::active_active::a_server_that_joins_in_a_hurry_stops_at_a_row_that_it_has",
        ]),
    ),
    (
        "On `a`, for each of the two",
        Tests(&[
            "clusters::active_active::a_server_joins_while_the_others_are_written_to",
            "clusters::active_active::a_server_that_joins_in_a_hurry_stops_at_a_row_that_it_has",
        ]),
    ),
    ("On `b`", Tests(&["clusters::active_active::a_server_joins_while_the_others_are_written_to"])),
    ("On `d`", Tests(&["clusters::active_active::a_server_joins_while_the_others_are_written_to"])),
    ("On `a`: enable the two.", Tests(&["clusters::active_active::a_server_joins_while_the_others_are_written_to"])),
    (
        "On `a`: `CREATE SUBSCRIPTION from_d",
        Tests(&[
            "clusters::active_active::a_server_joins_while_the_others_are_written_to",
            "clusters::active_active::a_server_that_joins_in_a_hurry_stops_at_a_row_that_it_has",
        ]),
    ),
];

const CITUS: Held = &[
    ("Which node makes the ID", Tests(&["pg_test/citus/run"])),
    ("Queries by time", Tests(&["pg_test/citus/run"])),
    ("A node that is not configured", Tests(&["pg_test/citus/run"])),
    ("Existing tables", Tests(&["pg_test/citus/run"])),
];

const MONITORING: Held = &[
    ("Before going live", Tests(&["leases::procedures::before_going_live"])),
    ("Layout and epoch", Tests(&["leases::procedures::before_going_live"])),
    ("No two servers", Tests(&["leases::procedures::before_going_live"])),
    (
        "There is one [free slot",
        Tests(&[
            "leases::procedures::before_going_live",
            "origin::a_standby_without_a_slot_stops_and_one_that_has_one_goes_on",
        ]),
    ),
    ("Clocks are synchronized", Nobody("the machine's own")),
    ("A test restore", Tests(&["leases::procedures::before_going_live"])),
    ("Alerts", Tests(&["clients::monitoring"])),
    ("A failover has been tried", Tests(&["leases::procedures::before_going_live"])),
    ("What to look at", Tests(&["leases::single::a_worker_is_leased_listed_and_given_back"])),
    ("`lead`", Tests(&["clock::behind_the_clock_ids_come_at_real_time_pace"])),
    ("`waits`", Tests(&["waits::a_session_shows_that_it_waits_for_the_next_tick"])),
    (
        "`lease`",
        Tests(&[
            "leases::single::a_worker_is_leased_listed_and_given_back",
            "leases::faults::an_outage_longer_than_the_window_stops_ids_until_it_is_over",
            "leases::servers::a_promoted_standby_leases_a_worker_of_its_own",
        ]),
    ),
    (
        "`granted_until`",
        Tests(&[
            "leases::single::all_processes_have_one_clock",
            "leases::failover::a_commit_whose_wait_was_cancelled_grants_nothing",
        ]),
    ),
    (
        "`registry_error`",
        Tests(&[
            "leases::faults::an_outage_longer_than_the_window_stops_ids_until_it_is_over",
            "leases::trouble::no_reason_is_forgotten",
        ]),
    ),
    ("`layout_end`", Tests(&["leases::procedures::before_going_live"])),
    (
        "Waiting sessions",
        Tests(&[
            "waits::a_session_shows_that_it_waits_for_the_next_tick",
            "waits::a_session_shows_that_it_waits_for_a_lease",
            "waits::explain_says_how_long_a_statement_has_waited",
        ]),
    ),
    (
        "`Extension`, `SnowflakeClock`",
        Tests(&[
            "waits::a_session_shows_that_it_waits_for_the_next_tick",
            "waits::a_session_shows_that_it_waits_for_a_lease",
            "waits::explain_says_how_long_a_statement_has_waited",
        ]),
    ),
    (
        "`Extension`, `SnowflakeCeiling`",
        Tests(&[
            "waits::a_session_shows_that_it_waits_for_the_next_tick",
            "waits::a_session_shows_that_it_waits_for_a_lease",
            "waits::explain_says_how_long_a_statement_has_waited",
        ]),
    ),
    (
        "`Extension`, `SnowflakeLease`",
        Tests(&[
            "waits::a_session_shows_that_it_waits_for_the_next_tick",
            "waits::a_session_shows_that_it_waits_for_a_lease",
            "waits::explain_says_how_long_a_statement_has_waited",
        ]),
    ),
    (
        "`Extension`, `SnowflakeRegistry`",
        Tests(&[
            "waits::a_session_shows_that_it_waits_for_the_next_tick",
            "waits::a_session_shows_that_it_waits_for_a_lease",
            "waits::explain_says_how_long_a_statement_has_waited",
        ]),
    ),
    (
        "`Extension`, `SnowflakeSegment`",
        Tests(&["leases::segments::while_the_registry_is_away_numbers_go_on_as_long_as_they_last"]),
    ),
    ("`IPC`, `SyncRep`", Tests(&["synchronous::reset_lets_waiting_sessions_go"])),
];

const SEGMENTS: Held = &[
    (
        "There are gaps**",
        Tests(&[
            "leases::segments::a_crash_leaves_a_gap_and_a_clean_stop_none",
            "leases::segments::a_session_that_crashes_leaves_a_gap",
            "core::segment::troubles::a_clean_stop_leaves_no_gap",
        ]),
    ),
    (
        "After the registry was wiped",
        Tests(&[
            "leases::segments::a_registry_that_was_wiped_stops_and_does_not_begin_again",
            "leases::segments::after_a_wipe_a_tag_goes_on_above_what_all_servers_were_granted",
            "core::segment::troubles::a_registry_that_has_forgotten_is_told",
        ]),
    ),
];

const RUNBOOK: Held = &[
    ("`duplicate key value", Tests(&["procedures::ids_that_two_servers_made_are_found"])),
    (
        "`the clock is … behind",
        Tests(&["leap::a_server_that_is_a_year_ahead_goes_back", "leap::under_load_with_the_lead_allowed"]),
    ),
    ("`the IDs of this database reach", Tests(&["procedures::a_database_from_a_server_that_was_ahead_goes_back"])),
    (
        "`the clock has leapt",
        Tests(&["crash::the_clock_jumps_for_a_minute", "leap::for_longer_than_a_minute_it_is_believed"]),
    ),
    (
        "`waits` rises",
        Tests(&[
            "clock::more_than_the_layout_holds_waits_and_loses_nothing",
            "leases::servers::all_workers_are_taken",
            "leases::servers::a_worker_is_used_again_when_its_lease_is_over",
        ]),
    ),
    ("`this server has no lease", Tests(&["leases::faults::an_outage_shorter_than_the_window_stops_nobody"])),
    (
        "`the registry of worker IDs has forgotten",
        Tests(&[
            "leases::forgotten::who_has_leased_before_waits_until_all_that_was_granted_is_over",
            "leases::procedures::after_a_loss_whoever_has_no_lease_waits",
        ]),
    ),
    (
        "`the replication origin \"snowflake\" has lost",
        Tests(&["origin::without_its_value_it_is_an_error_with_a_way_out"]),
    ),
    ("`a session holds the replication origin", Tests(&["origin::held_by_a_session_it_says_which_session_to_end"])),
    (
        "`sequence _snowflake.… is damaged`",
        Tests(&[
            "damage::a_damaged_sequence_is_an_error_and_stops_no_other_database",
            "damage::form::a_page_of_another_form_is_neither_read_nor_written",
        ]),
    ),
    ("`all slots for origins are taken`", Tests(&["origin::with_all_slots_taken_the_parameter_is_named"])),
    (
        "WARNING `replication origin",
        Tests(&["origin::missing_at_a_start_it_comes_back_and_each_database_goes_on_above_its_own"]),
    ),
    ("`could not access file", Tests(&["scripts/test-packages"])),
    (
        "sessions hang",
        Tests(&[
            "waits::a_session_shows_that_it_waits_for_the_next_tick",
            "waits::a_session_shows_that_it_waits_for_a_lease",
            "waits::explain_says_how_long_a_statement_has_waited",
        ]),
    ),
    ("a node of Citus", Tests(&["pg_test/citus/run"])),
    ("Two servers with one worker ID", Tests(&["procedures::ids_that_two_servers_made_are_found"])),
    (
        "The clock is wrong",
        Tests(&[
            "procedures::a_database_from_a_server_that_was_ahead_goes_back",
            "procedures::a_rewind_below_an_id_that_another_database_keeps_repeats_it",
            "clock::behind_the_clock_ids_come_at_real_time_pace",
        ]),
    ),
    ("is slewed", Nobody("the clock follows, and so do IDs")),
    (
        "was set back, by up to",
        Tests(&["crash::the_clock_jumps_for_a_minute", "clock::behind_the_clock_ids_come_at_real_time_pace"]),
    ),
    ("was set back further", Tests(&["leap::a_server_that_is_a_year_ahead_goes_back"])),
    ("leaps forward", Tests(&["leap::for_longer_than_a_minute_it_is_believed"])),
    ("was ahead for a long time", Tests(&["leap::a_server_that_is_a_year_ahead_goes_back"])),
    (
        "IDs are far ahead of the clock",
        Tests(&[
            "procedures::a_database_from_a_server_that_was_ahead_goes_back",
            "procedures::a_rewind_below_an_id_that_another_database_keeps_repeats_it",
            "clock::behind_the_clock_ids_come_at_real_time_pace",
        ]),
    ),
    (
        "The layout is full",
        Tests(&[
            "clock::more_than_the_layout_holds_waits_and_loses_nothing",
            "leases::servers::all_workers_are_taken",
            "leases::servers::a_worker_is_used_again_when_its_lease_is_over",
        ]),
    ),
    (
        "IDs per tick",
        Tests(&[
            "clock::more_than_the_layout_holds_waits_and_loses_nothing",
            "leases::servers::all_workers_are_taken",
            "leases::servers::a_worker_is_used_again_when_its_lease_is_over",
        ]),
    ),
    (
        "Workers",
        Tests(&[
            "clock::more_than_the_layout_holds_waits_and_loses_nothing",
            "leases::servers::all_workers_are_taken",
            "leases::servers::a_worker_is_used_again_when_its_lease_is_over",
        ]),
    ),
    ("Time", Tests(&["leases::procedures::before_going_live"])),
    ("The registry is away, or was lost", Tests(&["leases::faults::an_outage_shorter_than_the_window_stops_nobody"])),
    (
        "Make sure that no server can reach",
        Tests(&["leases::procedures::the_registry_is_lost_and_servers_move_to_another"]),
    ),
    (
        "Stop the servers, or wait",
        Tests(&[
            "leases::procedures::the_registry_is_lost_and_servers_move_to_another",
            "leases::procedures::a_server_that_stays_with_the_old_registry_has_a_number_of_the_new_one",
        ]),
    ),
    ("Set `pg_snowflake.registry`", Tests(&["leases::procedures::the_registry_is_lost_and_servers_move_to_another"])),
    ("If you cannot wait", Tests(&["leases::procedures::the_registry_is_lost_and_servers_move_to_another"])),
    (
        "The registry has forgotten",
        Tests(&[
            "leases::forgotten::who_has_leased_before_waits_until_all_that_was_granted_is_over",
            "leases::procedures::a_new_server_is_started_after_the_others_have_stored_their_leases_again",
            "leases::procedures::after_a_loss_whoever_has_no_lease_waits",
        ]),
    ),
    (
        "Leave the running servers alone.",
        Tests(&["leases::procedures::a_new_server_is_started_after_the_others_have_stored_their_leases_again"]),
    ),
    (
        "Wait until the other servers have leases.",
        Tests(&[
            "leases::procedures::the_registry_is_trusted_when_all_leases_are_over_or_stored_again",
            "leases::forgotten::an_operator_who_knows_better_ends_the_wait",
        ]),
    ),
    ("A minute after", Tests(&["leases::segments::after_a_wipe_a_tag_goes_on_above_what_all_servers_were_granted"])),
    (
        "If a server logged",
        Tests(&[
            "leases::procedures::a_new_server_is_started_after_the_others_have_stored_their_leases_again",
            "procedures::ids_that_two_servers_made_are_found",
        ]),
    ),
    ("It is over", Tests(&["leases::procedures::an_old_backup_of_the_registry_is_restored"])),
];

const PASSWORD: Held = &[
    ("PostgreSQL", Tests(&["leases::secrets::the_log_says_what_does_not_protect_a_connection"])),
    ("etcd, Redis", Tests(&["leases::secrets::the_log_says_what_does_not_protect_a_connection"])),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The lines of a document that are neither code nor blank.
fn lines(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs").join(document)).unwrap();
    let mut in_block = false;
    let is_text = |line: &&str| {
        in_block ^= line.starts_with("```");
        !in_block && !line.starts_with("    ") && !line.is_empty()
    };
    text.lines().filter(is_text).map(str::to_owned).collect()
}

/// What is behind the number of a step.
fn step(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". ")?;
    number.parse::<u8>().ok().map(|_| rest)
}

/// Rows of tables, steps, and bullets that begin in bold.
fn rows(document: &str) -> Vec<String> {
    let is_rule = |line: &String| line.starts_with('|') && line.chars().all(|c| "|- ".contains(c));
    let lines = lines(document);
    let mut rows = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let is_head = lines.get(at + 1).is_some_and(is_rule);
        let row = line.strip_prefix("| ").filter(|_| !is_head && !is_rule(line));
        rows.extend(row.or_else(|| step(line)).or_else(|| line.strip_prefix("* **")).map(str::to_owned));
    }
    rows
}

/// Sections, paragraphs that begin in bold, and steps.
fn procedures(document: &str) -> Vec<String> {
    let lines = lines(document);
    let found = lines
        .iter()
        .filter_map(|line| line.strip_prefix("## ").or_else(|| line.strip_prefix("**")).or_else(|| step(line)));
    found.map(str::to_owned).collect()
}

/// All of these, in order.
fn all(document: &str) -> Vec<String> {
    let (rows, procedures) = (rows(document), procedures(document));
    let is_either = |line: &String| {
        let text = line.trim_start_matches(['|', '*', '#', ' ']);
        let of = |list: &[String]| list.iter().any(|part| part == text || step(line).is_some_and(|step| step == part));
        (of(&rows) && !line.starts_with('#')) || of(&procedures)
    };
    let kept = lines(document).into_iter().filter(is_either);
    kept.map(|line| step(&line).unwrap_or(&line).trim_start_matches(['|', '*', '#', ' ']).to_owned()).collect()
}

/// Whether there is a test of this name.
fn exists(name: &str) -> bool {
    if name.contains('/') {
        return root().join(name).exists();
    }
    let (start, rest) = name.split_once("::").unwrap();
    let (directory, path) = match start {
        "core" | "registry" => (format!("{start}/tests"), rest),
        "clusters" => ("pg_test/clusters/tests/clusters".to_owned(), rest),
        _ => ("pg_test/tests".to_owned(), name),
    };
    let (file, function) = path.rsplit_once("::").unwrap();
    let file = root().join(directory).join(file.replace("::", "/"));
    let sources = [file.with_extension("rs"), file.join("mod.rs")];
    let Some(source) = sources.iter().find_map(|file| std::fs::read_to_string(file).ok()) else { return false };
    let lines: Vec<&str> = source.lines().collect();
    let head = format!("fn {function}(");
    let Some(at) = lines.iter().position(|line| line.starts_with(&head)) else { return false };
    let has_attribute =
        lines[..at].iter().rev().take_while(|line| line.starts_with('#')).any(|line| *line == "#[test]");
    // Of those that run with each registry.
    let list = source.split("with_each_registry!(").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default();
    has_attribute || list.split(',').any(|listed| listed.trim() == function)
}

#[test]
fn each_row_and_each_procedure_has_a_test() {
    // Of the settings, those about the password of a registry.
    let settings = rows("reference/settings.md").into_iter();
    let password = settings.skip_while(|row| !row.starts_with("PostgreSQL |")).take(2).collect();
    let documents = [
        ("leases.md", LEASES, rows("leases.md")),
        ("promise.md", PROMISE, rows("promise.md")),
        ("hosted-promise.md", HOSTED, rows("hosted-promise.md")),
        ("hosted.md", EDITIONS, rows("hosted.md")),
        ("servers.md", SERVERS, rows("servers.md")),
        ("patroni.md", PATRONI, procedures("patroni.md")),
        ("active-active.md", ACTIVE_ACTIVE, procedures("active-active.md")),
        ("citus.md", CITUS, procedures("citus.md")),
        ("monitoring.md", MONITORING, all("monitoring.md")),
        ("runbook.md", RUNBOOK, all("runbook.md")),
        ("segments.md", SEGMENTS, all("segments.md")),
        ("reference/settings.md", PASSWORD, password),
    ];
    for (document, held, found) in documents {
        for (row, (words, by)) in found.iter().zip(held) {
            assert!(row.starts_with(words), "{document} has \"{row}\" where \"{words}\" is expected");
            match by {
                Tests(tests) => {
                    assert!(!tests.is_empty(), "{document}: {words}");
                    for test in *tests {
                        assert!(exists(test), "{document}: for \"{words}\", there is no test {test}");
                    }
                }
                Nobody(reason) => assert!(!reason.is_empty(), "{document}: {words}"),
            }
        }
        assert_eq!(found.len(), held.len(), "{document}: rows, and those in this file");
    }
    assert!(!exists("procedures::no_such_test") && !exists("no_such_file::test"));
}
