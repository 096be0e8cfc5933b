//! What mallory does to the objects while a call waits: each move, and what she puts in the place.

use super::world::{Ground, Relation, Scene, World};
use std::fmt;

/// What she does to a relation, or to all of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Move {
    /// It gets another name, and its own goes to something else.
    Rename,
    /// It goes, and something else has its name.
    Drop,
    /// It goes to another schema, and something else has its name.
    SetSchema,
    /// A partition is a table of its own from now on, and another one has its name and its place.
    Detach,
    /// It belongs to another role: hers, which gives it code; of her own, that of her crew.
    Owner,
    /// The schema gets another name; one with its name has something for each relation.
    Schema,
}

/// What stands in the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoy {
    /// Of the same kind.
    Same,
    /// A table, in the place of a sequence.
    Table,
    View,
    Foreign,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub step: Move,
    /// The relation; none for a schema.
    pub on: Option<String>,
    pub decoy: Decoy,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.on.as_deref().unwrap_or("all");
        let step = match self.step {
            Move::Rename => "is renamed",
            Move::Drop => "is dropped",
            Move::SetSchema => "goes to another schema",
            Move::Detach => "is detached",
            Move::Owner => return write!(f, "{on} gets another owner"),
            Move::Schema => "have another schema",
        };
        let decoy = match self.decoy {
            Decoy::Same => "its like",
            Decoy::Table => "a table",
            Decoy::View => "a view",
            Decoy::Foreign => "a foreign table",
        };
        write!(f, "{on} {step}, then {decoy}")
    }
}

impl Change {
    /// Whether a superuser makes it.
    pub fn is_of_steward(&self, ground: Ground) -> bool {
        self.step == Move::Owner && ground == Ground::Others
    }
}

/// All that mallory can do in a scene: as the owner of all, or else as the owner of the schema.
pub fn all(scene: &Scene) -> Vec<Change> {
    let mut changes = Vec::new();
    for relation in scene.relations.iter().filter(|relation| "rpSv".contains(relation.kind)) {
        let is_table = "rp".contains(relation.kind);
        let decoys = if relation.kind == 'S' {
            &[Decoy::Same, Decoy::Table, Decoy::View, Decoy::Foreign][..]
        } else {
            &[Decoy::Same, Decoy::View, Decoy::Foreign]
        };
        let mut add = |step, decoy| changes.push(Change { step, on: Some(relation.name.clone()), decoy });
        for &decoy in decoys {
            if !relation.is_inner {
                add(Move::Drop, decoy);
            }
            if scene.ground != Ground::Others {
                add(Move::Rename, decoy);
            }
        }
        if is_table {
            add(Move::Owner, Decoy::Same);
        }
        if scene.ground != Ground::Others && relation.kind != 'S' {
            add(Move::SetSchema, Decoy::Same);
        }
        if scene.ground != Ground::Others && relation.parent.is_some() && is_table {
            add(Move::Detach, Decoy::Same);
        }
    }
    for decoy in [Decoy::Same, Decoy::View, Decoy::Foreign] {
        changes.push(Change { step: Move::Schema, on: None, decoy });
    }
    changes
}

/// The statements.
pub fn script(world: &World, scene: &Scene, change: &Change, is_plain: bool) -> String {
    let schema = &scene.schema;
    let Some(name) = &change.on else {
        let decoys = scene.relations.iter().filter(|relation| "rpSv".contains(relation.kind));
        let decoys: String = decoys
            .map(|relation| {
                let part = relation.parent.as_ref().filter(|_| change.decoy == Decoy::Same);
                let part = part.map(|parent| format!("{schema}.{parent}"));
                decoy(world, schema, relation, &relation.name, change.decoy, part.as_deref(), is_plain)
            })
            .collect();
        return format!(
            "ALTER SCHEMA {schema} RENAME TO {schema}_gone; CREATE SCHEMA {schema};
             GRANT USAGE ON SCHEMA {schema} TO PUBLIC; {decoys}"
        );
    };
    let relation = scene.named(name).unwrap();
    let word = word(relation.kind);
    let whole = format!("{schema}.{name}");
    let put = |name: &str| decoy(world, schema, relation, name, change.decoy, None, is_plain);
    match change.step {
        Move::Rename => format!("ALTER {word} {whole} RENAME TO {name}_gone; {}", put(name)),
        Move::Drop => format!("DROP {word} {whole} CASCADE; {}", put(name)),
        Move::SetSchema => {
            format!("CREATE SCHEMA {schema}_side; ALTER {word} {whole} SET SCHEMA {schema}_side; {}", put(name))
        }
        Move::Detach => {
            let parent = relation.parent.as_ref().unwrap();
            let part = format!("{schema}.{parent}");
            format!(
                "ALTER TABLE {part} DETACH PARTITION {whole}; ALTER TABLE {whole} RENAME TO {name}_gone; {}",
                decoy(world, schema, relation, name, change.decoy, Some(&part), is_plain)
            )
        }
        Move::Owner if scene.ground == Ground::Others => format!(
            "ALTER TABLE {whole} OWNER TO mallory; SET LOCAL ROLE mallory; CALL tools.arm('{whole}'); RESET ROLE"
        ),
        Move::Owner => format!("ALTER TABLE {whole} OWNER TO crew"),
        Move::Schema => unreachable!("it has no relation"),
    }
}

/// How a statement names the kind of a relation.
pub fn word(kind: char) -> &'static str {
    match kind {
        'S' => "SEQUENCE",
        'v' => "VIEW",
        'i' | 'I' => "INDEX",
        _ => "TABLE",
    }
}

/// Makes something with the name of a relation. A table has a domain as the type of its key, where
/// that is not to be plain.
fn decoy(
    world: &World,
    schema: &str,
    relation: &Relation,
    name: &str,
    decoy: Decoy,
    part: Option<&str>,
    is_plain: bool,
) -> String {
    let kind = match (decoy, relation.kind) {
        (Decoy::Same, 'S') => "sequence",
        (Decoy::Same, 'v') | (Decoy::View, _) => "view",
        (Decoy::Same | Decoy::Table, _) => "table",
        (Decoy::Foreign, _) => "foreign table",
    };
    let key = match (&part, decoy, relation.key.is_some()) {
        (Some(_), _, is_partitioned) => {
            let key = if is_partitioned { "PARTITION BY RANGE (id)" } else { "" };
            format!("{} {key}", relation.bounds.as_deref().unwrap_or_default())
        }
        (None, Decoy::Same, true) => "PARTITION BY RANGE (id)".to_owned(),
        _ => String::new(),
    };
    let key_type = if is_plain { "bigint" } else { "tools.number" };
    let part = part.map_or("NULL".to_owned(), |part| format!("'{part}'"));
    let keys: Vec<String> = world.keys(&relation.name).iter().map(i64::to_string).collect();
    format!(
        "CALL tools.decoy('{schema}.{name}', '{kind}', '{key_type}', {part}, '{}', '{{{}}}');\n",
        key.replace('\'', "''"),
        keys.join(",")
    )
}
