//! The configurations that stand in files of the originals' forms, as their Admin APIs see them: texts that are served,
//! and that may be replaced as a whole.

use super::files::Text;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;
use weir_dialect::{DialectName, DialectSet};
use weir_store::{DeclaredConfig, Replacement};

/// A file that has an Admin API.
struct Declaration {
    dialect: DialectName,
    /// `None`: no file has this dialect any more.
    file: Option<PathBuf>,
    declared: Arc<DeclaredConfig>,
    replacements: Receiver<Replacement>,
}

/// The files that have Admin APIs.
#[derive(Default)]
pub struct Declarations(Vec<Declaration>);

/// The configurations of the Admin APIs of dialects whose documents stand in files.
#[derive(Clone, Default)]
pub struct Declareds(Vec<(DialectName, Arc<DeclaredConfig>)>);

impl Declareds {
    /// That of a dialect.
    pub fn get(&self, dialect: DialectName) -> Option<&Arc<DeclaredConfig>> {
        let found = self.0.iter().find(|(name, _)| *name == dialect);
        found.map(|(_, declared)| declared)
    }

    /// The dialects that have their documents in files.
    pub fn dialects(&self) -> Vec<DialectName> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    /// Whether no dialect has its documents in a file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Declarations {
    /// Those of these files whose dialects are `wanted`, with what their Admin APIs share with them.
    pub fn of(
        dialects: &DialectSet,
        texts: &[Text],
        wanted: impl Fn(DialectName) -> bool,
    ) -> (Self, Declareds) {
        let (mut all, mut shared) = (Vec::new(), Vec::new());
        let has_admin = |name| dialects.get(name).is_some_and(|it| it.file_form().has_admin);
        let with_admin = texts.iter().filter(|text| has_admin(text.dialect));
        for text in with_admin.filter(|text| wanted(text.dialect)) {
            let (declared, replacements) = DeclaredConfig::new(Arc::clone(&text.text));
            shared.push((text.dialect, Arc::clone(&declared)));
            all.push(Declaration {
                dialect: text.dialect,
                file: Some(text.file.clone()),
                declared,
                replacements,
            });
        }
        (Self(all), Declareds(shared))
    }

    /// The file of a dialect.
    pub fn file(&self, dialect: DialectName) -> Option<PathBuf> {
        self.0.iter().find(|it| it.dialect == dialect)?.file.clone()
    }

    /// The next text that an Admin API brings.
    pub async fn replacement(&mut self) -> (DialectName, Replacement) {
        std::future::poll_fn(|context| {
            for it in &mut self.0 {
                if let std::task::Poll::Ready(Some(replacement)) = it.replacements.poll_recv(context) {
                    return std::task::Poll::Ready((it.dialect, replacement));
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// The work that is due once these texts are served.
    pub fn after(&mut self, texts: &[Text]) -> PendingReplacement {
        let mut served = Vec::new();
        for it in &mut self.0 {
            let found = texts.iter().find(|text| text.dialect == it.dialect);
            it.file = found.map(|text| text.file.clone());
            let Some(text) = found else { continue };
            if *it.declared.current().1 != *text.text {
                served.push((Arc::clone(&it.declared), Arc::clone(&text.text)));
            }
        }
        PendingReplacement {
            served,
            replacement: None,
        }
    }
}

/// The work that is due once a configuration is served.
#[derive(Default)]
pub struct PendingReplacement {
    served: Vec<(Arc<DeclaredConfig>, Arc<str>)>,
    replacement: Option<Replacement>,
}

impl PendingReplacement {
    /// Also answers the call that brought the text.
    pub fn answering(self, replacement: Replacement) -> Self {
        Self {
            replacement: Some(replacement),
            ..self
        }
    }

    /// It is served.
    pub fn done(self) {
        for (declared, text) in self.served {
            declared.served(text);
        }
        if let Some(replacement) = self.replacement {
            replacement.answer(Ok(()));
        }
    }
}
