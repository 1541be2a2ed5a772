//! A provider of logins in a Node process of its own. What it is asked for stands with the tests that ask.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The provider, until it is dropped.
pub struct Provider {
    pub process: Child,
    /// Its host and port, for clear HTTP.
    pub address: String,
}

impl Drop for Provider {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

impl Provider {
    /// Starts the `provider.mjs` of a folder with these options, and waits until it is ready.
    pub fn start(folder: &str, options: &Value) -> Self {
        let mut process = Command::new("node")
            .args(["--no-deprecation", "provider.mjs", &options.to_string()])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts (make deps FOR=test)");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut ready = lines.map_while(Result::ok);
        let address = ready.find_map(|it| it.strip_prefix("ready http://").map(str::to_owned));
        let address = address.expect("the provider is ready (make deps FOR=test installs it)");
        Self { process, address }
    }
}
