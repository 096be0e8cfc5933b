//! Prints the parts of IDs, without a database: `decode 382304429472247813`, or `decode --layout discord
//! 175928847299117063`, or with a layout of your own, `--layout 'timestamp=41 worker=9 sequence=13'`.

use snowflake_core::{Layout, Parts};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut layout: Layout = "default".parse()?;
    if arguments.first().is_some_and(|first| first == "--layout") {
        layout = arguments.get(1).ok_or("--layout needs a name or a notation")?.parse()?;
        arguments.drain(..2);
    }
    if arguments.is_empty() {
        return Err("usage: decode [--layout NAME] ID...".into());
    }
    for id in arguments {
        println!("{id}: {}", written(&layout.decode(id.parse()?)?));
    }
    Ok(())
}

/// The timestamp, and those of the other parts that the layout has. The sequence is 0 where it has none.
fn written(parts: &Parts) -> String {
    let mut text = parts.timestamp.to_string();
    for (name, part) in [("datacenter", parts.datacenter), ("worker", parts.worker), ("sequence", Some(parts.sequence))]
    {
        if let Some(number) = part {
            text += &format!(" {name}={number}");
        }
    }
    text
}
