//! Which pages to read ahead of a miss. So far nobody does: [`Prefetch`] is the registry that
//! prefetch policies join.

use fulgurite_base::SpecError;

/// The prefetch policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// Read the missed page and nothing else.
    None,
}

impl Prefetch {
    /// Every policy, with one line about it.
    pub const ALL: [(Prefetch, &'static str); 1] =
        [(Prefetch::None, "read the missed page and nothing else")];

    /// The policy's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Prefetch::None => "none",
        }
    }

    /// The policy called `name`.
    pub fn from_name(name: &str) -> Result<Prefetch, SpecError> {
        let names = Self::ALL.map(|(policy, _)| policy.name());
        let at = names.iter().position(|known| *known == name);
        at.map(|at| Self::ALL[at].0).ok_or_else(|| SpecError::unknown("prefetch", name, &names))
    }
}
