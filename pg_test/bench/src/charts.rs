//! The charts that the documentation shows.

use crate::contenders::{CACHED_SEQUENCE, OURS, SEQUENCE};
use crate::measures::clients;
use crate::report::number;
use crate::results::{Group, Results};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use std::path::Path;

const FONT: &str = "sans-serif";
const OUR_COLOR: RGBColor = RGBColor(0x1f, 0x6f, 0xb5);
const OTHER_COLOR: RGBColor = RGBColor(0xb8, 0xbf, 0xc6);
const TEXT_COLOR: RGBColor = RGBColor(0x24, 0x29, 0x2f);
const WIDTH: u32 = 760;

/// Draws all charts into a directory; `counts` are the numbers of clients.
///
/// # Errors
/// Where a file cannot be written.
pub fn draw(results: &Results, counts: &[usize], directory: &Path) -> Result<(), Box<dyn Error>> {
    for group in &results.groups {
        match group.title {
            "One call" => bars(group, "ns", "One call, in nanoseconds", 1000.0, &directory.join("one-call.svg"))?,
            "Rows of one INSERT" => {
                let title = "INSERT of many rows into a table with a primary key, in seconds";
                bars(group, "s", title, f64::INFINITY, &directory.join("insert.svg"))?;
                let title = "Size of the primary key's index, in MiB";
                bars(group, "MiB", title, f64::INFINITY, &directory.join("index-size.svg"))?;
            }
            "Clients at once" => lines(group, counts, &directory.join("clients.svg"))?,
            _ => {}
        }
    }
    Ok(())
}

/// A bar for each row of a group, ours in another color. Bars that are longer than `most` are cut.
fn bars(group: &Group, unit: &str, title: &str, most: f64, path: &Path) -> Result<(), Box<dyn Error>> {
    const TOP: i32 = 44;
    const STEP: i32 = 30;
    const LEFT: i32 = 320;
    const RIGHT: i32 = 80;
    let height = TOP + STEP * group.rows.len() as i32 + 12;
    let area = SVGBackend::new(path, (WIDTH, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let text = |size| TextStyle::from((FONT, size).into_font()).color(&TEXT_COLOR);
    area.draw_text(title, &text(21), (12, 12))?;
    let longest = group.rows.iter().map(|row| row.figure(unit).median).fold(0.0, f64::max).min(most);
    for (row, at) in group.rows.iter().zip(0..) {
        let (value, y) = (row.figure(unit).median, TOP + STEP * at);
        let length = (value.clamp(0.0, longest) / longest * f64::from(WIDTH as i32 - LEFT - RIGHT)) as i32;
        let color = if row.name.starts_with(OURS) { OUR_COLOR } else { OTHER_COLOR };
        area.draw(&Rectangle::new([(LEFT, y), (LEFT + length.max(1), y + STEP - 8)], color.filled()))?;
        if value > longest {
            let cut = LEFT + length - 24;
            area.draw(&Polygon::new(
                [(cut, y + STEP), (cut + 5, y + STEP), (cut + 11, y - 8), (cut + 6, y - 8)],
                WHITE,
            ))?;
        }
        let middle = y + (STEP - 8) / 2;
        area.draw_text(&row.name, &text(16).pos(Pos::new(HPos::Right, VPos::Center)), (LEFT - 8, middle))?;
        let value = number(value);
        area.draw_text(&value, &text(16).pos(Pos::new(HPos::Left, VPos::Center)), (LEFT + length + 6, middle))?;
    }
    area.present()?;
    Ok(())
}

/// IDs a second by the number of clients.
fn lines(group: &Group, counts: &[usize], path: &Path) -> Result<(), Box<dyn Error>> {
    let contenders =
        [(OURS, OUR_COLOR), (CACHED_SEQUENCE, RGBColor(0x8a, 0x63, 0xa8)), (SEQUENCE, RGBColor(0x6e, 0x77, 0x81))];
    let area = SVGBackend::new(path, (WIDTH, 340)).into_drawing_area();
    area.fill(&WHITE)?;
    let value = |contender: &str, clients: usize| {
        group.row(&clients::name(contender, clients)).map_or(0.0, |row| row.figure("million IDs/s").median)
    };
    let highest = contenders.iter().flat_map(|(name, _)| counts.iter().map(|&count| value(name, count)));
    let top = highest.fold(0.0, f64::max) * 1.3;
    let last = counts.len() as i32 - 1;
    let mut chart = ChartBuilder::on(&area)
        .caption("Million IDs a second, by the number of clients", (FONT, 21).into_font().color(&TEXT_COLOR))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(40)
        .build_cartesian_2d(0..last, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(counts.len())
        .x_label_formatter(&|at| counts.get(*at as usize).map_or_else(String::new, ToString::to_string))
        .label_style((FONT, 16).into_font().color(&TEXT_COLOR))
        .draw()?;
    for (name, color) in contenders {
        let points: Vec<_> = (0..).zip(counts).map(|(at, &count)| (at, value(name, count))).collect();
        chart
            .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], color.filled()));
        chart.draw_series(PointSeries::of_element(points, 3, color.filled(), &|at, size, style| {
            Circle::new(at, size, style)
        }))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .label_font((FONT, 16).into_font().color(&TEXT_COLOR))
        .draw()?;
    area.present()?;
    Ok(())
}
