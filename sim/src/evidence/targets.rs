//! The table of targets.

/// The power of a row to prove something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An input, which proves nothing.
    In,
    /// Arithmetic over inputs: has to agree exactly.
    Sum,
    /// Has to come out of a model that knows inputs only.
    Out,
    /// A relation.
    Shape,
    /// An estimate of the author.
    Projection,
    /// Another product, or a machine that is not modelled.
    Context,
    /// The area of a synthesis.
    Area,
}

impl Role {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "in" => Self::In,
            "sum" => Self::Sum,
            "out" => Self::Out,
            "shape" => Self::Shape,
            "proj" => Self::Projection,
            "ctx" => Self::Context,
            "area" => Self::Area,
            _ => return None,
        })
    }

    /// Whether rows of this role are judged.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Sum | Self::Out | Self::Shape)
    }
}

/// A published quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub id: &'static str,
    /// Its role.
    pub role: Role,
    /// Where it stands in the document.
    pub source: &'static str,
    /// The quantity.
    pub quantity: &'static str,
    /// As published.
    pub value: &'static str,
    /// Clock, sizes, topology, machine.
    pub conditions: &'static str,
    /// How it is judged.
    pub tolerance: &'static str,
}

/// The table, with its sources.
const TABLE: &str = include_str!("../../evidence/targets.md");

/// All rows, in the order of the table.
pub fn rows() -> Vec<Row> {
    TABLE.lines().filter_map(row).collect()
}

/// A row of eight cells whose second one is a role.
fn row(line: &'static str) -> Option<Row> {
    let line = line.strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    let [id, role, source, quantity, value, conditions, _, tolerance] = cells[..] else {
        return None;
    };
    let role = Role::named(role)?;
    Some(Row { id, role, source, quantity, value, conditions, tolerance })
}
