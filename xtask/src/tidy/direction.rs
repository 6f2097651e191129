//! Dependencies between our packages point to a lower tier, never sideways.

use super::Finding;
use crate::metadata::{Metadata, Package};

const RULE: &str = "direction";

/// One of our packages, as far as this rule looks.
#[derive(Debug)]
pub(super) struct Member<'a> {
    name: &'a str,
    tier: Option<u64>,
    /// Names of all its dependencies, those for tests apart.
    dependencies: Vec<&'a str>,
}

/// Our packages out of the whole graph.
pub(super) fn members(metadata: &Metadata) -> Vec<Member<'_>> {
    metadata.members().map(Member::of).collect()
}

impl<'a> Member<'a> {
    fn of(package: &'a Package) -> Self {
        let shipped = package
            .dependencies
            .iter()
            .filter(|dependency| !dependency.is_dev());
        let dependencies = shipped.map(|dependency| dependency.name.as_str()).collect();
        Self {
            name: &package.name,
            tier: package.tier(),
            dependencies,
        }
    }
}

/// Packages without a tier, and arrows that do not point down.
pub(super) fn check(members: &[Member<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members {
        let Some(tier) = member.tier else {
            let message = "states no tier: [package.metadata.tyo-mq] tier = N";
            findings.push(Finding::new(RULE, member.name, message));
            continue;
        };
        for target in members
            .iter()
            .filter(|other| member.dependencies.contains(&other.name))
        {
            // a target without a tier is a finding of its own
            let Some(below) = target.tier.filter(|below| *below >= tier) else {
                continue;
            };
            let message = format!(
                "is tier {tier} and depends on {} of tier {below}",
                target.name
            );
            findings.push(Finding::new(RULE, member.name, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn broken(members: &[(&str, Option<u64>, &[&str])], expected: &[&str]) {
        let members: Vec<Member<'_>> = members
            .iter()
            .map(|(name, tier, dependencies)| Member {
                name,
                tier: *tier,
                dependencies: dependencies.to_vec(),
            })
            .collect();
        let found: Vec<String> = check(&members)
            .into_iter()
            .map(|finding| finding.place)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn arrows_point_down() {
        broken(
            &[
                ("codec", Some(0), &["bytes"]),
                ("transport", Some(1), &["codec"]),
            ],
            &[],
        );
        broken(
            &[
                ("codec", Some(0), &["transport"]),
                ("transport", Some(1), &["codec"]),
            ],
            &["codec"],
        );
    }

    #[test]
    fn sideways_is_not_down() {
        broken(
            &[("codec", Some(0), &[]), ("core", Some(0), &["codec"])],
            &["core"],
        );
    }

    #[test]
    fn every_package_states_its_tier() {
        broken(
            &[("codec", None, &[]), ("transport", Some(1), &["codec"])],
            &["codec"],
        );
    }
}
