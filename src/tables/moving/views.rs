//! What the catalogue says of views that depend on columns, and what makes such views again.

use super::rows::{Result, Unread, composed, flag, oid, oids, places, rows, text, texts};
use crate::postgres::encoding::Text;
use pgrx::spi::SpiClient;
use snowflake_moving::{Column, View};

const BINDINGS: &str = include_str!("views/bindings.sql");
const STATE_OF: &str = include_str!("views/state_of.sql");
const VIEWS: &str = include_str!("views/views.sql");

/// A part of queries: what must be the same after a view was made again.
const STATE: (&str, &str) = (":state", include_str!("views/state.sql"));

/// The other parts of the query for views. The last two stand in those before them.
const PARTS: [(&str, &str); 5] = [
    (":blockers", include_str!("views/blockers.sql")),
    (":definition", include_str!("views/definition.sql")),
    (":details", include_str!("views/details.sql")),
    (":odd", include_str!("views/odd.sql")),
    (":given", include_str!("views/given.sql")),
];

/// The views that depend on columns.
pub fn views(client: &SpiClient, columns: &[&Column]) -> Result<Vec<View>> {
    let mut views = rows(client, &composed(&composed(VIEWS, &PARTS), &[STATE]), &places(columns), |row| {
        Ok(View {
            oid: oid(row, 1)?,
            name: text(row, 2)?,
            description: text(row, 3)?,
            is_materialized: flag(row, 4)?,
            owner: oid(row, 13)?,
            is_owned: flag(row, 5)?,
            reads: oids(row, 6)?,
            blockers: texts(row, 7)?,
            definition: text(row, 8)?,
            details: texts(row, 9)?,
            is_populated: flag(row, 10)?,
            bytes: row.get(11)?.ok_or(Unread::Gone)?,
            state: text(row, 12)?,
            bindings: Vec::new(),
        })
    })?;
    let found: Vec<Vec<String>> = views.iter().map(|view| bindings(client, view, &views)).collect::<Result<_>>()?;
    views.iter_mut().zip(found).for_each(|(view, bindings)| view.bindings = bindings);
    Ok(views)
}

/// What a view depends on by its rule. Views that are made again (`all`) are known by their names, everything else by its
/// OID: a name may mean something else afterwards.
fn bindings(client: &SpiClient, view: &View, all: &[View]) -> Result<Vec<String>> {
    rows(client, BINDINGS, &[Text(view.name.clone()).into()], |row| {
        let (part, whole, number) = (text(row, 1)?, text(row, 2)?, oid(row, 3)?.0);
        let is_made_again = all.iter().any(|view| view.description == whole);
        Ok(if is_made_again { part } else { format!("{part} (OID {number})") })
    })
}

/// The state and the bindings of a view that was made again; no state where there is no such view.
pub fn now(client: &SpiClient, view: &View, all: &[View]) -> Result<(Vec<String>, Vec<String>)> {
    let state = rows(client, &composed(STATE_OF, &[STATE]), &[Text(view.name.clone()).into()], |row| text(row, 1))?;
    Ok((state, bindings(client, view, all)?))
}
