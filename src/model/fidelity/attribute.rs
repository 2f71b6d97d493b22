//! An attribute, and a table of them.

/// What netfix does with an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Stored, compared and restored.
    Restored,
    /// Stored, compared and restored as bytes that netfix does not interpret.
    SentBack,
    /// Needed to read the others.
    Used,
    /// Named as `unsupported` at the snapshot.
    Named,
    /// A state, a count or an ability, which no request sets.
    State,
    /// A setting that netfix does not read, for this reason.
    NotRead(&'static str),
}

/// How a rehearsal compares what a restore brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TwinComparison {
    /// By the bytes that the kernel reports (`kernel/reported/`).
    Reported,
    /// As netfix reads it, with this part of a link (`rehearsal/compare.rs`).
    Part(&'static str),
    /// Not at all, for this reason.
    Never(&'static str),
}

/// An attribute.
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// Its number in messages (`nla_type`).
    pub number: u16,
    /// Its name in the kernel's header.
    pub name: &'static str,
    /// What netfix does with it.
    pub fate: Treatment,
    /// The tests that show it: files in `tests/native`, or in `tests/vm/scenarios`; empty where there is nothing to show.
    pub tests: &'static str,
    /// The first kernel that has it, where that is newer than 4.15.
    pub since: &'static str,
    /// How a rehearsal compares it, where that is not as its table says.
    twin: Option<TwinComparison>,
}

pub(in crate::model) const fn row(
    number: u16,
    name: &'static str,
    fate: Treatment,
    tests: &'static str,
) -> Attribute {
    Attribute {
        number,
        name,
        fate,
        tests,
        since: "",
        twin: None,
    }
}

impl Attribute {
    pub(in crate::model) const fn since(self, since: &'static str) -> Self {
        Self { since, ..self }
    }

    pub(in crate::model) const fn in_twin(self, comparison: TwinComparison) -> Self {
        Self {
            twin: Some(comparison),
            ..self
        }
    }
}

/// The attributes of one kind of object.
#[derive(Debug)]
pub struct AttributeTable {
    /// What has them.
    pub title: &'static str,
    /// The header that defines them.
    pub source: &'static str,
    /// How a rehearsal compares those that a restore brings back.
    pub twin: TwinComparison,
    /// The attributes.
    pub rows: &'static [Attribute],
}

impl AttributeTable {
    /// What netfix does with an attribute; `None` for one that is not known yet.
    #[must_use]
    pub fn fate(&self, number: u16) -> Option<Treatment> {
        self.row(number).map(|row| row.fate)
    }

    /// An attribute; `None` for one that is not known yet.
    pub(crate) fn row(&self, number: u16) -> Option<&'static Attribute> {
        self.rows.iter().find(|row| row.number == number)
    }

    /// The name of an attribute.
    pub(crate) fn name(&self, number: u16) -> Option<&'static str> {
        self.row(number).map(|row| row.name)
    }

    /// How a rehearsal compares an attribute; `None` for one that no restore sets: its treatment is the reason.
    pub(crate) fn comparison(&self, row: &Attribute) -> Option<TwinComparison> {
        let is_restored = matches!(row.fate, Treatment::Restored | Treatment::SentBack);
        is_restored.then(|| row.twin.unwrap_or(self.twin))
    }

    /// Whether an attribute is stored as bytes.
    pub(crate) fn is_sent_back(&self, number: u16) -> bool {
        self.fate(number) == Some(Treatment::SentBack)
    }
}
