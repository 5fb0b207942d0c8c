//! Checks that the licence of every dependency is compatible with Apache-2.0 OR MIT.

use anyhow::{Result, bail};
use cargo_metadata::{CargoOpt, MetadataCommand};
use spdx::Expression;

/// The licences that require no more than that their notice is kept.
const ACCEPTED: &[&str] = &[
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
];

pub(crate) fn check() -> Result<()> {
    let metadata = MetadataCommand::new().features(CargoOpt::AllFeatures).exec()?;
    let refused: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| !package.license.as_deref().is_some_and(is_accepted))
        .map(|package| {
            format!(
                "{} {}: {}",
                package.name,
                package.version,
                package.license.as_deref().unwrap_or("no licence")
            )
        })
        .collect();
    if !refused.is_empty() {
        bail!("not among the accepted licences:\n{}", refused.join("\n"));
    }
    println!("{} packages, every licence accepted", metadata.packages.len());
    Ok(())
}

/// Whether `licence` can be satisfied with accepted licences only.
fn is_accepted(licence: &str) -> bool {
    // Older packages write a slash for OR.
    let expression = Expression::parse(&licence.replace('/', " OR "));
    expression.is_ok_and(|expression| {
        expression
            .evaluate(|requirement| requirement.license.id().is_some_and(|id| ACCEPTED.contains(&id.name)))
    })
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn accepted_and_refused_terms_are_distinguished() {
        for fine in ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(Apache-2.0 OR MIT) AND BSD-3-Clause"] {
            assert!(is_accepted(fine), "{fine}");
        }
        for refused in ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "a licence of my own", ""] {
            assert!(!is_accepted(refused), "{refused}");
        }
    }
}
