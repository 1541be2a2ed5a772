//! A gateway that is taken out stays so after a restart, from the first moment on: with its control plane away, without
//! a disk of its own, and with a store of its own, whether there is a console or not. Taken back it is ready at once as
//! well.

use crate::support::{Call, Weir, until};
use std::path::Path;

/// The place from which the gateway `edge` reads that it is out.
#[derive(Debug, Clone, Copy)]
enum StateLocation {
    /// At a control plane, which is away when the gateway starts again.
    Control,
    /// At a control plane, which is there; the gateway keeps nothing on a disk.
    ControlWithoutData,
    /// In its own store.
    Here,
    /// Likewise; it starts again without a console.
    HereAlone,
}

impl StateLocation {
    fn flags(self, console: &str, is_again: bool) -> Vec<String> {
        let own = ["--name", "edge"];
        let data = match self {
            Self::ControlWithoutData => &[][..],
            _ => &["--data", "edge"],
        };
        let more = match (self, is_again) {
            (Self::Control | Self::ControlWithoutData, _) => vec![
                "--role".to_owned(),
                "gateway".to_owned(),
                "--control".to_owned(),
                format!("http://{console}"),
            ],
            (Self::HereAlone, true) => Vec::new(),
            (Self::Here | Self::HereAlone, _) => vec!["--console".to_owned(), console.to_owned()],
        };
        let own = own.iter().chain(data).map(|it| (*it).to_owned());
        own.chain(more).collect()
    }

    fn start(self, folder: &Path, console: &str, is_again: bool) -> Weir {
        let flags = self.flags(console, is_again);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Weir::start(folder, &flags)
    }

    fn control(self, folder: &Path) -> Option<Weir> {
        let flags = [
            "--role",
            "control",
            "--data",
            "control",
            "--console",
            "127.0.0.1:0",
        ];
        let is_followed = matches!(self, Self::Control | Self::ControlWithoutData);
        is_followed.then(|| Weir::start(folder, &flags))
    }
}

fn readiness(weir: &Weir) -> u16 {
    Call::get(&weir.status(), "/status/ready").make().status
}

#[test]
fn one_that_is_out_stays_out_after_a_restart() {
    for place in [
        StateLocation::Control,
        StateLocation::ControlWithoutData,
        StateLocation::Here,
        StateLocation::HereAlone,
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        for (method, expected) in [("PUT", 503), ("DELETE", 200)] {
            let case = format!("{place:?} {method}");
            let mut plane = place.control(folder);
            let any = "127.0.0.1:0".to_owned();
            let edge = place.start(folder, &plane.as_ref().map_or(any, Weir::console), false);
            let console = plane.as_ref().unwrap_or(&edge).console();
            let path = "/api/v1/gateways/edge/drain";
            until("it is known, and is told so", || {
                Call::new(method, &console, path).make().status == 204
            });
            until("it hears so", || readiness(&edge) == expected);
            let kept = folder.join("edge/last-known-good");
            if matches!(place, StateLocation::Control) {
                until("what it serves is kept", || kept.exists());
                plane.take().into_iter().for_each(Weir::kill);
            }
            edge.kill();
            for _ in 0..3 {
                let again = place.start(folder, &console, true);
                assert_eq!(readiness(&again), expected, "{case}, after a restart");
                again.kill();
            }
        }
    }
}
