//! The configurations that stand in files of the originals' forms, as their Admin APIs see them: texts that are served,
//! and that may be replaced as a whole.

use super::files::Text;
use crate::doors::Door;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;
use weir_store::{Declared, Replacement};

/// A file that has an Admin API.
struct Declaration {
    door: Door,
    /// `None`: there is none of this door any more.
    file: Option<PathBuf>,
    declared: Arc<Declared>,
    replacements: Receiver<Replacement>,
}

/// The files that have Admin APIs.
#[derive(Default)]
pub struct Declarations(Vec<Declaration>);

/// The configurations behind the Admin APIs of doors whose documents stand in files.
#[derive(Clone, Default)]
pub struct Declareds {
    /// That of the `kong.yml`.
    pub kong: Option<Arc<Declared>>,
    /// That of the `apisix.yaml`.
    pub apisix: Option<Arc<Declared>>,
}

impl Declarations {
    /// Those of these files whose doors are `wanted`, with what their Admin APIs share with them.
    pub fn of(texts: &[Text], wanted: impl Fn(Door) -> bool) -> (Self, Declareds) {
        let (mut all, mut shared) = (Vec::new(), Declareds::default());
        for text in texts.iter().filter(|text| wanted(text.door)) {
            let place = match text.door {
                Door::Kong => &mut shared.kong,
                Door::Apisix => &mut shared.apisix,
                Door::Native => continue,
            };
            let (declared, replacements) = Declared::new(Arc::clone(&text.text));
            *place = Some(Arc::clone(&declared));
            all.push(Declaration {
                door: text.door,
                file: Some(text.file.clone()),
                declared,
                replacements,
            });
        }
        (Self(all), shared)
    }

    /// The file of a door.
    pub fn file(&self, door: Door) -> Option<PathBuf> {
        self.0.iter().find(|it| it.door == door)?.file.clone()
    }

    /// The next text that an Admin API brings.
    pub async fn replacement(&mut self) -> (Door, Replacement) {
        std::future::poll_fn(|context| {
            for it in &mut self.0 {
                if let std::task::Poll::Ready(Some(replacement)) = it.replacements.poll_recv(context) {
                    return std::task::Poll::Ready((it.door, replacement));
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
            let found = texts.iter().find(|text| text.door == it.door);
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
