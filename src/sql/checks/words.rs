//! The words of each finding, and of the advice that goes with it.

use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::time::timestamptz;
use crate::postgres::wording::{duration, sentence};
use crate::settings;
use crate::tables::moving::Key;
use crate::tables::partitions::Unmarked;
use crate::tables::replicated::Replicated;
use snowflake_core::capacity::{
    Backfill, Doubles, Lengths, Lifetime, Misfit, Need, Rate, Room, Sorting, Verdict, YEAR, burst,
    lifetime as judge_life, rate as judge_rate, room as judge_room, sustained,
};
use snowflake_core::notation::BUILT_IN;
use snowflake_core::{Field, FieldError, Layout, Micros, UnixMicros};
use snowflake_moving::target::Unfit;
use snowflake_moving::{Values, Width};

/// An answer.
pub struct Finding {
    /// Its subject.
    pub subject: &'static str,
    /// Its judgement.
    pub verdict: Verdict,
    /// The words.
    pub finding: String,
    /// The advice.
    pub advice: Option<String>,
}

fn row(subject: &'static str, verdict: Verdict, finding: String, advice: &str) -> Finding {
    Finding { subject, verdict, finding, advice: (!advice.is_empty()).then(|| advice.to_owned()) }
}

fn at(instant: UnixMicros) -> String {
    timestamptz::display(timestamptz::to_datum(instant))
}

/// A length of time in years: `69.7 years`.
fn years(length: Micros) -> String {
    format!("{:.1} years", length.0 as f64 / YEAR.0 as f64)
}

/// A number of IDs: whole, but for less than ten.
fn number(ids: f64) -> String {
    if ids < 10.0 { format!("{ids:.2}") } else { format!("{ids:.0}") }
}

/// How the layout is written.
pub fn layout(layout: &Layout) -> Finding {
    match layout.check_makes_ids() {
        Ok(()) => row("layout", Verdict::Ok, layout.to_string(), ""),
        Err(error) => row(
            "layout",
            Verdict::Problem,
            format!("{layout}: {error}, so IDs can only be read in this layout, not made"),
            "Choose a layout with a worker and a sequence.",
        ),
    }
}

/// Until when IDs can be made.
pub fn lifetime(layout: &Layout, now: UnixMicros, needed: Option<u32>) -> Finding {
    let found = judge_life(layout, now, needed);
    let (epoch, end) = (layout.epoch(), layout.end());
    let ends = format!(
        "IDs can be made until {}, for {} more; {} have passed since the epoch",
        at(end),
        years(end.saturating_since(now)),
        years(now.saturating_since(epoch))
    );
    let (finding, advice) = match found {
        Lifetime::Lasts => (ends, ""),
        Lifetime::TooShort => (
            format!("{ends}; {} years are planned", needed.unwrap_or(0)),
            "Choose a later epoch, or a wider timestamp: each bit more doubles the time.",
        ),
        Lifetime::Over => {
            (format!("the time of the layout ended at {}", at(end)), "Choose a later epoch, or a wider timestamp.")
        }
        Lifetime::NotBegun => (
            format!("the epoch, {}, is in the future: no ID can be made before it", at(epoch)),
            "Choose an epoch that has passed on all servers.",
        ),
    };
    row("time", found.verdict(), finding, advice)
}

/// Which numbers IDs are, and how exact their times.
pub fn bigint(layout: &Layout) -> Finding {
    let tick = match layout.tick_length().0 {
        us if us % 1_000_000 == 0 => format!("{} s", us / 1_000_000),
        us if us % 1_000 == 0 => format!("{} ms", us / 1_000),
        us => format!("{us} us"),
    };
    let finding = format!(
        "IDs are from 0 to {}: they fit bigint and are never negative; their times are exact to {tick}",
        layout.max_id()
    );
    row("bigint", Verdict::Ok, finding, "")
}

/// Whether JavaScript has them exactly.
pub fn javascript(found: Doubles, matters: Option<bool>) -> Finding {
    let finding = match found {
        Doubles::Exact => "all IDs are below 2^53, so JavaScript has them exactly as numbers".to_owned(),
        Doubles::ExactLongEnough(end) | Doubles::ExactUntil(end) => {
            format!("IDs are below 2^53 until {}: from then on, they lose digits as numbers of JavaScript", at(end))
        }
        Doubles::Inexact(end) => {
            format!("IDs are above 2^53 since {}: they lose digits as numbers of JavaScript", at(end))
        }
    };
    let advice = match found {
        Doubles::Exact | Doubles::ExactLongEnough(_) => "",
        _ => "Send IDs to JavaScript as text (id::text), or choose a layout of 53 bits, such as cosid-js.",
    };
    row("javascript", found.verdict(matters), finding, advice)
}

/// How many servers there is room for.
pub fn room(layout: &Layout, need: &Need) -> Finding {
    let found = judge_room(layout, need);
    let (workers, each) = (layout.workers(), layout.workers_of_datacenter());
    let has_datacenters = layout.max(Field::Datacenter) > 0;
    let mut finding = if !layout.has_workers() {
        "the layout does not tell servers apart".to_owned()
    } else if has_datacenters {
        format!("{workers} servers can make IDs: {} datacenters with {each} each", layout.max(Field::Datacenter) + 1)
    } else {
        format!("{workers} servers can make IDs")
    };
    match (need.servers, need.datacenters) {
        (Some(servers), Some(datacenters)) => {
            let noun = if datacenters == 1 { "datacenter" } else { "datacenters" };
            finding += &format!("; {servers} are planned, in {datacenters} {noun}");
        }
        (Some(servers), None) => finding += &format!("; {servers} are planned"),
        (None, Some(datacenters)) => finding += &format!("; {datacenters} datacenters are planned"),
        (None, None) => {}
    }
    let advice = match found {
        Room::TooManyDatacenters => {
            "Choose a layout with a wider datacenter, or one that numbers all servers together."
        }
        Room::TooMany if has_datacenters => "Choose a layout with a wider worker or datacenter.",
        Room::TooMany => "Choose a layout with a wider worker.",
        Room::NoneSpare | Room::FewSpare => {
            "With leases, plan two workers for each server: after a crash, a server takes another worker at \
             once, and its own is free only when the old lease ends."
        }
        Room::Enough if !has_datacenters && need.datacenters.is_some_and(|datacenters| datacenters > 1) => {
            "The layout has no datacenter: number the servers of all datacenters together."
        }
        Room::Enough => "",
    };
    row("servers", found.verdict(), finding, advice)
}

/// How many IDs a second one server can make.
pub fn rate(layout: &Layout, needed: Option<f64>, max_burst: Micros) -> Finding {
    let found = judge_rate(layout, needed);
    let mut finding = format!(
        "a server can make {} IDs a second, and a peak {} more in advance (max_burst is {})",
        number(sustained(layout)),
        burst(layout, max_burst),
        duration(max_burst)
    );
    if let Some(needed) = needed {
        finding += &format!("; {} are planned", number(needed));
    }
    let advice = match found {
        Rate::Enough => "",
        Rate::Tight => "Peaks wait: choose a layout with a wider sequence or a shorter tick, or write on more servers.",
        Rate::TooFast => "Choose a layout with a wider sequence or a shorter tick, or write on more servers.",
    };
    row("rate", found.verdict(), finding, advice)
}

/// From when on rows can have IDs of their own time.
pub fn oldest_possible(layout: &Layout) -> Finding {
    let finding = format!("rows from {} on can get IDs of their own time", at(layout.epoch()));
    row("old rows", Verdict::Ok, finding, "")
}

/// Whether the oldest row can.
pub fn backfill(layout: &Layout, found: Backfill, oldest: i64) -> Finding {
    let oldest = timestamptz::display(oldest);
    let (finding, advice) = match found {
        Backfill::Possible => (format!("rows from {oldest} on can get IDs of their own time"), String::new()),
        Backfill::BeforeEpoch(earlier) => {
            let advice = match earlier {
                Some(earlier) => format!(
                    "With pg_snowflake.epoch = '{}', they can; IDs then end at {}.",
                    earlier.epoch(),
                    at(earlier.end())
                ),
                None => "No layout begins before 1970. Such rows can keep other numbers.".to_owned(),
            };
            let finding = format!("the oldest row is of {oldest}, and there are no IDs before {}", at(layout.epoch()));
            (finding, advice)
        }
        Backfill::AfterEnd => {
            let finding = format!("the oldest row is of {oldest}, and there are no IDs from {} on", at(layout.end()));
            (finding, "Choose a later epoch, or a wider timestamp.".to_owned())
        }
    };
    row("old rows", found.verdict(), finding, &advice)
}

fn name(key: &Key) -> String {
    format!("{}.{}", key.names.0, key.names.1)
}

/// A key without values.
pub fn empty_key(key: &Key) -> Finding {
    row("key", Verdict::Ok, format!("{} has no values", name(key)), adopt(key).as_deref().unwrap_or(""))
}

/// A key whose values are IDs of the layout.
pub fn key_with_ids(key: &Key, values: Values) -> Finding {
    let finding = format!("{} has IDs of this layout, from {} to {}", name(key), values.lowest, values.highest);
    row("key", Verdict::Ok, finding, "")
}

/// Roles that may insert rows, and could not any more, or cannot.
pub fn shut_out(key: &Key) -> Option<Finding> {
    const ADVICE: &str = "Have a superuser grant it, or revoke INSERT from such roles.";
    key.shut_out.as_ref().map(|problem| row("key", Verdict::Problem, problem.clone(), ADVICE))
}

/// A table of which subscribers know the partitions that were there.
pub fn replicated(found: Replicated) -> Finding {
    let verdict = if found.loses_rows { Verdict::Problem } else { Verdict::Warning };
    row("replication", verdict, found.finding, &found.advice)
}

/// Advice for a key that has no snowflake IDs yet.
fn adopt(key: &Key) -> Option<String> {
    if key.makes_ids {
        return None;
    }
    let widens = if key.width == Some(Width::Eight) { "" } else { ", and makes it bigint" };
    Some(format!("snowflake_adopt() gives it IDs{widens}."))
}

/// A key with other values.
pub fn key(layout: &Layout, key: &Key, values: Values, found: Sorting) -> Finding {
    let name = name(key);
    let Values { lowest, highest } = values;
    let (finding, advice) = match &found {
        Sorting::Below(next) => {
            let next_at = layout.timestamp(*next).map_or_else(|_| String::new(), at);
            let read_as = match layout.timestamp(highest) {
                Ok(last) => format!("; read as IDs, they would be of the time up to {}", at(last)),
                Err(_) => String::new(),
            };
            let negative = if lowest < 0 { " Negative numbers are not IDs, and stay as they were." } else { "" };
            let finding = format!(
                "{name} has values from {lowest} to {highest}, which sort below the next ID, {next}{read_as}; \
                 times are true from {next_at} on"
            );
            let advice = format!(
                "{} Have queries by time leave out what is below the first ID.{negative}",
                adopt(key).unwrap_or_default()
            );
            (finding, advice.trim().to_owned())
        }
        Sorting::NotBelow(next, likely) => {
            let finding =
                format!("{name} has the value {highest}, and the next ID would be {next}, which is not above it");
            let advice = match &**likely {
                [] => "Choose an earlier epoch, or give such rows lower numbers.".to_owned(),
                likely => format!(
                    "If these are IDs, choose the layout that made them, so that they keep their meaning. The \
                     value could be of {}.",
                    likely.iter().map(|name| made(name, highest)).collect::<Vec<_>>().join(" or ")
                ),
            };
            (finding, advice)
        }
        Sorting::NoNext => {
            (format!("{name} has values from {lowest} to {highest}, and no ID can be made now"), String::new())
        }
    };
    row("key", found.verdict(), finding, &advice)
}

/// `pgedge (2026-11-20 23:01:18.859+00)`
fn made(name: &str, id: i64) -> String {
    let layout = BUILT_IN.iter().find(|built_in| built_in.name == name);
    let layout = layout.and_then(|built_in| built_in.notation.parse::<Layout>().ok());
    let time = layout.and_then(|layout| layout.timestamp(id).ok());
    time.map_or_else(|| name.to_owned(), |time| format!("{name} ({})", at(time)))
}

/// A table whose key cannot be looked at.
pub fn no_key(error: Error) -> Finding {
    let is_unclear = matches!(&error, Error::Moving(MovingError::Unfit(_, Unfit::WhichColumn(_))));
    let (finding, hint) = error.words();
    let hint = if is_unclear { Some("Give it as key_column.".to_owned()) } else { hint };
    Finding { subject: "key", verdict: Verdict::Problem, finding, advice: hint }
}

/// The server is ready.
pub fn server(has_registry: bool) -> Finding {
    let worker = if has_registry { "leases its worker ID" } else { "has its worker ID" };
    row("server", Verdict::Ok, format!("this server has this layout, and {worker}"), "")
}

/// No IDs are made.
pub fn not_preloaded() -> Finding {
    row(
        "server",
        Verdict::Warning,
        "the library is not preloaded, so this server makes no IDs".to_owned(),
        "Add pg_snowflake to shared_preload_libraries in postgresql.conf, and restart the server.",
    )
}

/// The server has another layout.
pub fn other_layout_of_server(layout: &Layout) -> Finding {
    row(
        "server",
        Verdict::Warning,
        format!("this server is configured for the layout \"{}\"", settings::layout()),
        &format!("Put into postgresql.conf of every server, and restart: {}", lines(layout)),
    )
}

/// The settings by which a server has this layout.
fn lines(layout: &Layout) -> String {
    let named = BUILT_IN.iter().find_map(|built_in| {
        let other: Layout = built_in.notation.parse().ok()?;
        (other.with_epoch(layout.epoch()) == Ok(*layout)).then_some((built_in.name, other.epoch() == layout.epoch()))
    });
    match named {
        Some((name, true)) => format!("pg_snowflake.layout = '{name}' (and no pg_snowflake.epoch)"),
        _ => format!("pg_snowflake.layout = '{layout}' (and no pg_snowflake.epoch)"),
    }
}

/// Leases are wanted, and there is nobody who grants them.
pub fn no_registry() -> Finding {
    row(
        "server",
        Verdict::Warning,
        "leases are planned, and pg_snowflake.registry is not set".to_owned(),
        "Set it on every server, and restart.",
    )
}

/// Something keeps the server from its lease.
pub fn kept_from_lease(trouble: String) -> Finding {
    row(
        "server",
        Verdict::Problem,
        format!("this server gets no lease of a worker ID now, or cannot renew it: {trouble}"),
        "See the server's log, which says what to do, and snowflake_status().",
    )
}

/// Something keeps the server from numbers of segments.
pub fn kept_from_numbers(trouble: String) -> Finding {
    row(
        "server",
        Verdict::Warning,
        format!("this server gets no numbers of a segment, or not as fast as they are used: {trouble}"),
        "See the server's log, which says what to do, and snowflake_segments().",
    )
}

/// The worker is not used, as the datacenter is missing.
pub fn unused_worker(layout: &Layout) -> Finding {
    row(
        "server",
        Verdict::Warning,
        format!(
            "pg_snowflake.worker_id is set without pg_snowflake.datacenter_id, and has no effect on leases in \
             the layout \"{layout}\""
        ),
        "Set both for one worker, only datacenter_id for any worker of a datacenter, or none.",
    )
}

/// Whether this is the datacenter, and the layout has several.
pub fn is_datacenter(layout: &Layout, field: Field) -> bool {
    field == Field::Datacenter && layout.max(Field::Datacenter) > 0
}

/// A server leases a worker of any datacenter.
pub fn any_datacenter() -> Finding {
    row(
        "server",
        Verdict::Warning,
        "with the registry and without pg_snowflake.datacenter_id, this server leases a worker of any datacenter"
            .to_owned(),
        "Set pg_snowflake.datacenter_id if the datacenter in an ID is to be that of the server.",
    )
}

/// The worker does not fit the layout, or is missing.
pub fn unfit_worker(layout: &Layout, error: FieldError) -> Finding {
    let (verdict, advice) = match error {
        FieldError::Missing(field) => (
            Verdict::Warning,
            format!(
                "Set pg_snowflake.{field}_id to a number from 0 to {}, different on each server, or lease \
                 worker IDs from a registry.",
                layout.max(field)
            ),
        ),
        FieldError::NoSuchField(field) => (Verdict::Problem, format!("Remove pg_snowflake.{field}_id.")),
        FieldError::TooHigh { field, max, .. } => {
            (Verdict::Problem, format!("Set pg_snowflake.{field}_id to at most {max}, or choose a wider {field}."))
        }
    };
    let finding = match error {
        FieldError::Missing(field) => format!("pg_snowflake.{field}_id is not set"),
        FieldError::NoSuchField(field) => format!("pg_snowflake.{field}_id is set, and the layout has no {field}"),
        FieldError::TooHigh { field, value, max } => {
            format!("pg_snowflake.{field}_id is {value}, and the highest {field} of the layout is {max}")
        }
    };
    row("server", verdict, finding, &advice)
}

/// A server with a registry leases one worker and no other.
pub fn worker_and_registry() -> Finding {
    row(
        "server",
        Verdict::Warning,
        "pg_snowflake.worker_id is set beside pg_snowflake.registry, so this server leases that worker and no other"
            .to_owned(),
        "Remove worker_id, unless this server must have that number: after a crash it waits for its old \
         lease, or starts ahead of the clock.",
    )
}

/// Settings that do not go together.
pub fn misfit(layout: &Layout, lengths: &Lengths, misfit: Misfit) -> Finding {
    let max_lead = duration(lengths.max_lead);
    let (finding, advice) = match misfit {
        Misfit::NoBurst => (
            format!(
                "pg_snowflake.max_burst, {}, is shorter than a tick, {}: a peak can take no IDs in advance",
                duration(lengths.max_burst),
                duration(layout.tick_length())
            ),
            "Set max_burst to one tick or more, or to 0 if that is meant.",
        ),
        Misfit::ReservesBeyondLead => (
            format!(
                "pg_snowflake.reserve_ahead, {}, is longer than max_lead, {max_lead}: after a crash, IDs wait \
                 for the clock",
                duration(lengths.reserve_ahead)
            ),
            "Set max_lead to reserve_ahead or more.",
        ),
        Misfit::LeasesBeyondLead => (
            format!(
                "pg_snowflake.registry_window, {}, is longer than max_lead, {max_lead}: a server that takes \
                 its own worker over after a crash waits for the clock",
                duration(lengths.window.unwrap_or_default())
            ),
            "Set max_lead to registry_window or more.",
        ),
    };
    row("server", Verdict::Warning, finding, advice)
}

/// The database has the layout on record.
pub fn recorded(used: bool) -> Finding {
    let finding = if used {
        "this database has this layout on record, and IDs were made in it: the choice is made"
    } else {
        "this database has this layout on record, and no ID was made in it yet"
    };
    row("database", Verdict::Ok, finding.to_owned(), "")
}

/// It has another one, and no IDs.
pub fn unused_record(recorded: &Layout) -> Finding {
    row(
        "database",
        Verdict::Warning,
        format!("this database has the layout \"{recorded}\" on record, and no ID was made in it yet"),
        "Once the server has the new layout, call snowflake_adopt_layout() in each database, as a superuser.",
    )
}

/// It has another one, and IDs.
pub fn used_record(recorded: &Layout) -> Finding {
    row(
        "database",
        Verdict::Problem,
        format!(
            "IDs of the layout \"{recorded}\" were made in this database: new ones could repeat them, and all \
             would be misread"
        ),
        "Keep that layout. To change it, dump the database, drop it, set the layout, and restore all but the \
         sequences of the schema _snowflake, with tables that have no IDs of the old layout.",
    )
}

/// Partitions of which nothing says whose keys they have.
pub fn unmarked(found: Unmarked) -> Finding {
    let Unmarked { partitions, tables, first } = found;
    let plural = if partitions == 1 { "" } else { "s" };
    let others = if tables > 1 { format!(" and {} other tables", tables - 1) } else { String::new() };
    row(
        "partitions",
        Verdict::Warning,
        format!(
            "nothing says of {partitions} partition{plural} of {first}{others} that their keys are snowflake IDs: where they have rows, they do not \
             expire, and the disk fills up"
        ),
        "Let the job run once, which knows some of them. For the others, their owner calls snowflake_declare_keys(), once for each table.",
    )
}

/// A restore or a subscription has replaced it, and IDs are made in the database.
pub fn replaced_record((form, epoch): (i64, i64)) -> Finding {
    let numbers = format!("{form} and {epoch}");
    let on_record = Layout::from_numbers(form, epoch).map_or(numbers, |layout| format!("\"{layout}\""));
    row(
        "database",
        Verdict::Warning,
        format!("another layout was put on record, {on_record}: IDs of this database keep theirs"),
        "Make an ID, by which the record is repaired, and only then a dump. Rows that were restored may have IDs of the \
         other layout.",
    )
}

/// Nothing readable is on record.
pub fn no_record(error: Error) -> Finding {
    let (finding, advice) = error.words();
    Finding {
        subject: "database",
        verdict: Verdict::Problem,
        finding: sentence(&finding).trim_end_matches('.').to_owned(),
        advice,
    }
}
