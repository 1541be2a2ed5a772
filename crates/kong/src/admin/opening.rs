//! Opening the Admin API for the program, over the store or over a file.

use super::{Admin, AdminOptions, Node};
use crate::dialect::KongDialect;
use std::sync::Arc;
use weir_dialect::{AdminApi, AdminContext, AdminOpening};

/// Opens the Admin API of a dialect with these settings.
pub fn open(dialect: KongDialect, context: AdminContext) -> AdminOpening {
    let AdminContext {
        store,
        declared,
        routes,
        node,
    } = context;
    let options = AdminOptions {
        translation: dialect.options,
        node: Node::of(node),
        others: Some(routes),
        // A kong.yml is a Kong without a database, whatever else there is.
        has_no_config: !dialect.has_config && declared.is_none(),
    };
    Box::pin(async move {
        let admin = match declared {
            Some(file) => Admin::over_file(file, options).await?,
            None => Admin::open(Arc::clone(&store), options).await?,
        };
        Ok(AdminApi {
            router: admin.router(),
            revisions: None,
        })
    })
}
