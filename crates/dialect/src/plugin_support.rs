//! What becomes of each plugin name of an original: one row a name, of its free and of its paid edition.
//!
//! The rows are the source of the tables in `docs/compatibility.md` and of `weir plugins --names`. A test of the house
//! compares them with what is built. **What it is not**: the list of any single dialect; each has its own.

/// A plugin name of an original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginName {
    /// The name in the original.
    pub name: &'static str,
    /// Whether only the original's paid edition has it.
    pub is_paid: bool,
    /// What Weir does with it.
    pub support: Support,
}

/// What Weir does with a plugin name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It works. The differences from the original, in Markdown; none: it works as in the original.
    Served(&'static [&'static str]),
    /// It is accepted and has nothing to do here; the reason.
    Idle(&'static str),
    /// Its configuration is checked, kept and given back. Calls that it would decide about are refused; the reason why
    /// it is not served.
    Checked(&'static str),
    /// It is refused by name; the reason.
    Refused(&'static str),
}

impl Support {
    /// The word for it in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Served([]) => "served",
            Self::Served(_) => "served with differences",
            Self::Idle(_) => "accepted",
            Self::Checked(_) => "checked",
            Self::Refused(_) => "refused",
        }
    }

    /// Why it is not served, or the differences.
    pub fn remarks(self) -> Vec<&'static str> {
        match self {
            Self::Served(differences) => differences.to_vec(),
            Self::Idle(reason) | Self::Checked(reason) | Self::Refused(reason) => vec![reason],
        }
    }
}

impl PluginName {
    /// One that works as in the original.
    pub const fn served(name: &'static str) -> Self {
        Self::new(name, Support::Served(&[]))
    }

    /// One that works, with these differences.
    pub const fn differs(name: &'static str, differences: &'static [&'static str]) -> Self {
        Self::new(name, Support::Served(differences))
    }

    /// One that has nothing to do here.
    pub const fn idle(name: &'static str, reason: &'static str) -> Self {
        Self::new(name, Support::Idle(reason))
    }

    /// One whose configuration is checked, and no more.
    pub const fn checked(name: &'static str, reason: &'static str) -> Self {
        Self::new(name, Support::Checked(reason))
    }

    /// One that is refused.
    pub const fn refused(name: &'static str, reason: &'static str) -> Self {
        Self::new(name, Support::Refused(reason))
    }

    /// The same, of the original's paid edition.
    pub const fn paid(mut self) -> Self {
        self.is_paid = true;
        self
    }

    const fn new(name: &'static str, support: Support) -> Self {
        Self {
            name,
            is_paid: false,
            support,
        }
    }
}
