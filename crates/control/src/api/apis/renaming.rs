//! Operations that have other ids in a document that is uploaded again: plans and products that open them name the new
//! ids. What is published keeps the former ones, which `weir_apis::renames` knows.

use super::entity_snapshot::{self, EntitySnapshot};
use super::specs;
use crate::api::Problem;
use std::collections::{BTreeMap, BTreeSet};
use weir_apis::entities::{Plan, Product, Publication, Version};

/// Writes the new ids into the plans of a version and into products that it is in.
pub fn rename(
    snapshot: &mut EntitySnapshot,
    version: &Version,
    renamed: &BTreeMap<String, String>,
) -> Result<(), Problem> {
    if renamed.is_empty() {
        return Ok(());
    }
    let today = |id: String| renamed.get(&id).cloned().unwrap_or(id);
    for mut plan in snapshot.plans(&version.api, &version.version)? {
        let before = plan.clone();
        plan.operations = plan.operations.into_iter().map(today).collect();
        let limits = plan.operation_limits.into_iter();
        plan.operation_limits = limits.map(|(id, all)| (today(id), all)).collect();
        if plan != before {
            let key = entity_snapshot::plan_key(&version.api, &version.version, &plan.name);
            snapshot.put(&key, &plan)?;
        }
    }
    let of_version = format!("{}/{}/", version.api, version.version);
    for mut product in snapshot.list::<Product>(&entity_snapshot::product_key(""))? {
        let mut is_in = false;
        for (publication, chosen) in &mut product.publications {
            if publication.starts_with(&of_version) {
                is_in = true;
                *chosen = std::mem::take(chosen).into_iter().map(today).collect();
            }
        }
        if is_in {
            snapshot.put(&entity_snapshot::product_key(&product.name), &product)?;
            rename_in_product_plans(snapshot, &product, &of_version, renamed)?;
        }
    }
    Ok(())
}

/// Plans of a product name operations of several APIs: the former id stays, as another API may have it. An id that another
/// API of the product has is not added: it would open that operation, too.
fn rename_in_product_plans(
    snapshot: &mut EntitySnapshot,
    product: &Product,
    of_version: &str,
    renamed: &BTreeMap<String, String>,
) -> Result<(), Problem> {
    let mut of_others = BTreeSet::new();
    for id in product
        .publications
        .keys()
        .filter(|it| !it.starts_with(of_version))
    {
        if let Some(it) = snapshot.find::<Publication>(&entity_snapshot::publication_key(id))? {
            let revision = snapshot.revision(&it.api, &it.version, it.revision)?;
            let description = specs::description(snapshot, &revision.spec)?;
            of_others.extend(description.operations.iter().map(|it| it.id.clone()));
        }
    }
    for mut plan in snapshot.list::<Plan>(&entity_snapshot::product_plan_key(&product.name, ""))? {
        let before = plan.clone();
        for (from, to) in renamed.iter().filter(|(_, to)| !of_others.contains(*to)) {
            if before.operations.contains(from) && !plan.operations.contains(to) {
                plan.operations.push(to.clone());
            }
            if let Some(limits) = before.operation_limits.get(from) {
                plan.operation_limits
                    .entry(to.clone())
                    .or_insert_with(|| limits.clone());
            }
        }
        if plan != before {
            snapshot.put(
                &entity_snapshot::product_plan_key(&product.name, &plan.name),
                &plan,
            )?;
        }
    }
    Ok(())
}
