//! Opening the Admin API and the control API for the program, over the store or over a file.

use super::{Admin, AdminOptions, Keyring};
use crate::dialect::ApisixDialect;
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::{AdminApi, AdminContext, AdminOpening, PluginCheck, Revisions};

/// Opens the Admin API of a dialect with these settings.
pub fn open(dialect: &ApisixDialect, context: AdminContext) -> AdminOpening {
    let settings = dialect.options.settings;
    let stock = AdminOptions::new(SystemTime::now);
    let keys = settings.keyring.as_ref().map(|keys| keys.0.clone());
    let options = AdminOptions {
        // The guard knows them.
        keys: Vec::new(),
        plugin_check: PluginCheck::new(context.node.log_folder.clone()),
        health: context.node.health,
        others: Some(context.routes),
        settings,
        router: dialect.options.router,
        keyring: Keyring {
            keys: keys.unwrap_or(stock.keyring.keys),
            encrypts_fields: settings.encrypts_fields,
        },
        ..stock
    };
    let is_over_file = context.declared.is_some();
    Box::pin(async move {
        let admin = match context.declared {
            Some(file) => Admin::over_file(file, options).await?,
            None => Admin::open(context.store, options).await?,
        };
        let revisions: Arc<dyn Revisions> = Arc::clone(&admin) as _;
        Ok(AdminApi {
            router: admin.router(),
            // Items of a file have none.
            revisions: Some(revisions).filter(|_| !is_over_file),
        })
    })
}

impl Revisions for Admin {
    fn revisions(&self) -> Vec<(&'static str, u64)> {
        self.modify_indexes()
    }
}
