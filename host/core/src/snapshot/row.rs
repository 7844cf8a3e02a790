//! Parsed data of one cluster, created once per cluster version.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::apis::ApiSet;
use super::models::{Grades, NodeCounts};
use crate::model::{Cluster, ResourceSummary, TaintEffect};
use crate::quantity::{Format, Quantity, whole};

/// Maximum number of distinct lists to share. A lower value only costs memory.
const INTERNED_MAX: usize = 16;

/// Parsed cluster.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) apis: Arc<ApiSet>,
    /// True if a taint keeps out new workloads that do not tolerate it.
    pub(super) blocks_scheduling: bool,
    pub(super) summary: Option<Summary>,
    pub(super) grades: Arc<Grades>,
    pub(super) counts: NodeCounts,
}

/// `status.resourceSummary`, reduced to free amounts.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Free pod slots; negative if more pods run than allowed.
    pub(super) pods: i64,
    pub(super) free: BTreeMap<String, Free>,
}

/// Free amount of one resource, in whole numbers rounded away from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Free {
    pub(super) units: i64,
    pub(super) millis: i64,
    /// Free amount for plugins, in base units and never below 0.
    pub(super) amount: f64,
    /// Total allocatable amount of all nodes, in base units.
    pub(super) allocatable: f64,
    /// True if the quantity has binary format, which determines how component sets count it.
    pub(super) binary: bool,
}

/// Lists that several clusters share.
pub(super) struct Interned {
    apis: Vec<Arc<ApiSet>>,
    grades: Vec<Arc<Grades>>,
}

impl Interned {
    /// Collects the lists of parsed rows.
    pub(super) fn of(rows: &[Arc<Row>]) -> Self {
        let mut interned = Self {
            apis: Vec::new(),
            grades: Vec::new(),
        };
        for row in rows {
            remember(&mut interned.apis, &row.apis);
            remember(&mut interned.grades, &row.grades);
        }
        interned
    }

    fn apis(&mut self, cluster: &Arc<Cluster>) -> Arc<ApiSet> {
        let known = self
            .apis
            .iter()
            .find(|set| set.is_of(&cluster.status.api_enablements))
            .cloned();
        let set = known.unwrap_or_else(|| Arc::new(ApiSet::new(cluster)));
        remember(&mut self.apis, &set);
        set
    }

    fn grades(&mut self, models: &[Value]) -> Arc<Grades> {
        let known = self.grades.iter().find(|grades| grades.is_of(models)).cloned();
        let grades = known.unwrap_or_else(|| Arc::new(Grades::new(models)));
        remember(&mut self.grades, &grades);
        grades
    }
}

fn remember<T>(known: &mut Vec<Arc<T>>, item: &Arc<T>) {
    if known.len() < INTERNED_MAX && !known.iter().any(|existing| Arc::ptr_eq(existing, item)) {
        known.push(Arc::clone(item));
    }
}

impl Row {
    pub(super) fn parse(cluster: &Arc<Cluster>, interned: &mut Interned) -> Arc<Self> {
        let blocks = |effect: &_| !matches!(effect, TaintEffect::PreferNoSchedule | TaintEffect::Other(_));
        let summary = cluster.status.resource_summary.as_ref();
        let grades = interned.grades(&cluster.spec.resource_models);
        let modelings = summary.map_or(&[][..], |summary| &summary.allocatable_modelings);
        Arc::new(Self {
            apis: interned.apis(cluster),
            blocks_scheduling: cluster.spec.taints.iter().any(|taint| blocks(&taint.effect)),
            summary: summary.map(Summary::parse),
            counts: NodeCounts::new(&grades, modelings),
            grades,
        })
    }
}

impl Summary {
    /// Parses the summary; an unreadable quantity counts as missing. (Karmada: `general.go:getAllowedPodNumber`.)
    fn parse(summary: &ResourceSummary) -> Self {
        let read = |amounts: &BTreeMap<String, String>, name: &str| amounts.get(name)?.parse::<Quantity>().ok();
        let pods = |amounts| read(amounts, "pods").map_or(0, |quantity| whole(quantity.units()));
        let taken = pods(&summary.allocated).wrapping_add(pods(&summary.allocating));
        let free = summary.allocatable.keys().filter_map(|name| {
            let allocatable = read(&summary.allocatable, name)?;
            let mut free = allocatable;
            for amounts in [&summary.allocated, &summary.allocating] {
                free = read(amounts, name).map_or(free, |taken| free.minus(taken));
            }
            Some((name.clone(), Free::new(free, allocatable)))
        });
        Self {
            pods: pods(&summary.allocatable).wrapping_sub(taken),
            free: free.collect(),
        }
    }
}

impl Free {
    fn new(free: Quantity, allocatable: Quantity) -> Self {
        Self {
            units: whole(free.units()),
            millis: whole(free.millis()),
            amount: base_units(free).max(0.0),
            allocatable: base_units(allocatable),
            binary: free.format() == Format::Binary,
        }
    }
}

/// Converts to base units. Amounts beyond 2^53 thousandths lose precision, which does not matter to plugins.
fn base_units(quantity: Quantity) -> f64 {
    quantity.millis() as f64 / 1000.0
}
