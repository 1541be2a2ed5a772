//! The configurations that stand in files of the originals' forms, as their Admin APIs see them: texts that are served,
//! and that may be replaced as a whole.

use super::files::Text;
use crate::dialects::FileKind;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;
use weir_store::{Declared, Replacement};

/// A file that has an Admin API.
struct Declaration {
    dialect: FileKind,
    /// `None`: there is none of this dialect any more.
    file: Option<PathBuf>,
    declared: Arc<Declared>,
    replacements: Receiver<Replacement>,
}

/// The files that have Admin APIs.
#[derive(Default)]
pub struct Declarations(Vec<Declaration>);

/// The configurations behind the Admin APIs of dialects whose documents stand in files.
#[derive(Clone, Default)]
pub struct Declareds {
    /// That of the `kong.yml`.
    pub kong: Option<Arc<Declared>>,
    /// That of the `apisix.yaml`.
    pub apisix: Option<Arc<Declared>>,
}

impl Declarations {
    /// Those of these files whose dialects are `wanted`, with what their Admin APIs share with them.
    pub fn of(texts: &[Text], wanted: impl Fn(FileKind) -> bool) -> (Self, Declareds) {
        let (mut all, mut shared) = (Vec::new(), Declareds::default());
        for text in texts.iter().filter(|text| wanted(text.dialect)) {
            let place = match text.dialect {
                FileKind::Kong => &mut shared.kong,
                FileKind::Apisix => &mut shared.apisix,
                FileKind::Native => continue,
            };
            let (declared, replacements) = Declared::new(Arc::clone(&text.text));
            *place = Some(Arc::clone(&declared));
            all.push(Declaration {
                dialect: text.dialect,
                file: Some(text.file.clone()),
                declared,
                replacements,
            });
        }
        (Self(all), shared)
    }

    /// The file of a dialect.
    pub fn file(&self, dialect: FileKind) -> Option<PathBuf> {
        self.0.iter().find(|it| it.dialect == dialect)?.file.clone()
    }

    /// The next text that an Admin API brings.
    pub async fn replacement(&mut self) -> (FileKind, Replacement) {
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

    /// What is to be done once these texts are served.
    pub fn after(&mut self, texts: &[Text]) -> After {
        let mut served = Vec::new();
        for it in &mut self.0 {
            let found = texts.iter().find(|text| text.dialect == it.dialect);
            it.file = found.map(|text| text.file.clone());
            let Some(text) = found else { continue };
            if *it.declared.current().1 != *text.text {
                served.push((Arc::clone(&it.declared), Arc::clone(&text.text)));
            }
        }
        After {
            served,
            replacement: None,
        }
    }
}

/// What is to be done once a configuration is served.
#[derive(Default)]
pub struct After {
    served: Vec<(Arc<Declared>, Arc<str>)>,
    replacement: Option<Replacement>,
}

impl After {
    /// The one that brings a text is to be told, too.
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
