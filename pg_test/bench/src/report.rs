//! The results as Markdown, which is also what a terminal shows.

use crate::results::{Group, Results};
use crate::rounds::{Figure, Row};
use std::fmt::Write as _;

/// All results.
pub fn markdown(results: &Results) -> String {
    let mut text = String::from("# Results of `make bench`\n");
    if results.quick {
        text.push_str("\nA quick run: the figures are rough.\n");
    }
    text.push('\n');
    let conditions = results.conditions.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]);
    text.push_str(&table(&[String::new(), String::new()], &conditions.collect::<Vec<_>>()));
    for skipped in &results.skipped {
        let _ = write!(text, "\nSkipped: {skipped}\n");
    }
    for group in &results.groups {
        text.push('\n');
        text.push_str(&section(group));
    }
    let ratios = results.groups.iter().flat_map(|group| &group.ratios);
    let (met, all) = ratios.fold((0, 0), |(met, all), ratio| (met + usize::from(ratio.met), all + 1));
    let _ = write!(text, "\n{met} of {all} goals are met.\n");
    text
}

/// One group: the medians with the lowest and highest round, then the ratios.
pub fn section(group: &Group) -> String {
    let mut text = format!("## {}\n\n{}\n\n", group.title, group.about);
    let units = group.rows.first().map(|row| row.figures.iter().map(|figure| figure.unit)).into_iter().flatten();
    let header: Vec<String> = std::iter::once(String::new()).chain(units.map(str::to_owned)).collect();
    let line = |row: &Row| std::iter::once(row.name.clone()).chain(row.figures.iter().map(cell)).collect();
    text.push_str(&table(&header, &group.rows.iter().map(line).collect::<Vec<_>>()));
    if !group.ratios.is_empty() {
        text.push('\n');
        let header = ["ratio", "found", "goal", ""].map(str::to_owned);
        let line = |ratio: &crate::results::Ratio| {
            let met = if ratio.met { "met" } else { "not met" };
            vec![ratio.what.clone(), format!("{:.3}", ratio.ratio), ratio.goal.to_string(), met.to_owned()]
        };
        text.push_str(&table(&header, &group.ratios.iter().map(line).collect::<Vec<_>>()));
    }
    text
}

fn cell(figure: &Figure) -> String {
    let lowest = figure.rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = figure.rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (lowest, highest) = (number(lowest), number(highest));
    if lowest == highest { lowest } else { format!("{} ({lowest} to {highest})", number(figure.median)) }
}

/// Three significant digits or more, and commas between thousands.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ if value.fract() == 0.0 => 0,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let digits = text.find('.').unwrap_or(text.len());
    let mut grouped = String::new();
    for (at, digit) in text.char_indices() {
        if at > 0 && at < digits && (digits - at) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn table(header: &[String], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([header[column].chars().count(), 3]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let row = |line: &[String]| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!(" {cell:<width$} |"));
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect::<String>();
    format!("{}|{rule}\n{}", row(header), lines.iter().map(|line| row(line)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_readable() {
        let cases =
            [(8.0561, "8.06"), (23.64, "23.6"), (4_095_999.7, "4,096,000"), (155.4, "155"), (2.0, "2"), (0.0, "0")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(-123.0), "-123");
        assert_eq!(number(-1234.0), "-1,234");
    }
}
