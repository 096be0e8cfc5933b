//! Which process a server is, so that a later one on the same machine can tell whether it is gone. From Linux's /proc; elsewhere, nothing
//! is known.

use std::fs;

/// A process that cannot be mistaken for another one: the boot of the machine, the namespace that its number is of, its number, and when
/// it was started. A copy of a machine has another boot, and a container another namespace.
#[derive(PartialEq, Eq)]
struct Postmaster<'a> {
    boot: &'a str,
    namespace: &'a str,
    number: u32,
    started: &'a str,
}

impl<'a> Postmaster<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut words = text.split(' ');
        let process = Self {
            boot: words.next()?,
            namespace: words.next()?,
            number: words.next()?.parse().ok()?,
            started: words.next()?,
        };
        words.next().is_none().then_some(process)
    }
}

/// The name of a process that this one sees: four words. Empty where it cannot be told.
pub fn of(number: u32) -> String {
    let name = || {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        let name = format!("{} {} {number} {}", boot.trim(), namespace.to_str()?, started(number)?);
        Postmaster::read(&name).is_some().then_some(name)
    };
    name().unwrap_or_default()
}

/// Whether the process of that name is gone for certain. `mine` names the one that asks.
pub fn is_gone(name: &str, mine: &str) -> bool {
    match (Postmaster::read(name), Postmaster::read(mine)) {
        // The number may be another process's by now.
        (Some(its), Some(my)) if (its.boot, its.namespace) == (my.boot, my.namespace) => {
            its != my && started(its.number).as_deref() != Some(its.started)
        }
        _ => false,
    }
}

/// When a process was started, in ticks since the boot.
fn started(number: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The second field is the name of the program, in parentheses, and may have any character.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19).map(str::to_owned)
}
