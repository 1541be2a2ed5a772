//! The descriptions of Kong and APISIX, run with programs that stand in for theirs: what they are started with, and from
//! where. The programs themselves are on few machines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::experiment::select as experiments;
use crate::gateway::{self, Gateway};
use crate::running::{InstanceLocation, configuration, values};
use crate::template::render;

/// An NGINX that writes down its path and its arguments.
const NGINX: &str = "#!/bin/sh\necho \"$0 $*\" > called\n";

fn program(path: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.canonicalize().unwrap()
}

fn described(name: &str) -> Gateway {
    gateway::select(&gateway::all(None).unwrap(), name)
        .unwrap()
        .swap_remove(0)
}

/// Fills in the configuration of a gateway and runs its command; the folder of the instance.
fn run(gateway: &Gateway, program: &Path, folder: &Path, variables: &[(&str, &Path)]) -> PathBuf {
    let upstream = "127.0.0.1:9000".parse().unwrap();
    let place = InstanceLocation::new(folder, "instance", upstream).unwrap();
    let experiment = experiments(&["A2".to_owned()]).unwrap()[0];
    let values = values(experiment, &place, program).unwrap();
    for (path, text) in configuration(gateway, &values, &place.directory).unwrap() {
        fs::write(path, text).unwrap();
    }
    let words = gateway
        .command(experiment)
        .map(|word| render(word, &values).unwrap());
    let words: Vec<String> = words.collect();
    let output = Command::new(&words[0])
        .args(&words[1..])
        .envs(variables.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    place.directory
}

#[test]
fn kong_is_started_from_its_own_folder_and_stays_in_front_by_one_setting() {
    let kong = described("kong");
    // It is called as `prepare -p PREFIX -c FILE`, and writes down where.
    let source = "#!/bin/sh\nnginx -v\nmkdir -p \"$3\"\necho \"$PWD $*\" > \"$3/../prepared\"\n";
    for (is_beside, folder) in [(true, "openresty"), (false, "elsewhere")] {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("opt/kong");
        fs::create_dir_all(home.join("kong")).unwrap();
        let own = program(&home.join("bin/kong"), source);
        let openresty = if is_beside {
            home.join(folder)
        } else {
            root.path().join(folder)
        };
        let nginx = program(&openresty.join("nginx/sbin/nginx"), NGINX);
        let variable = [("KONG_OPENRESTY", openresty.as_path())];
        let variables = if is_beside { &[][..] } else { &variable[..] };
        let directory = run(&kong, &own, root.path(), variables);
        let called = fs::read_to_string(home.join("called")).unwrap();
        assert!(called.starts_with(&nginx.display().to_string()), "{called}");
        assert!(!called.contains("daemon"), "the configuration says it: {called}");
        let settings = fs::read_to_string(directory.join("kong.conf")).unwrap();
        assert_eq!(settings.matches("nginx_daemon = off").count(), 1);
        let prepared = fs::read_to_string(directory.join("prepared")).unwrap();
        let home = home.canonicalize().unwrap();
        assert!(prepared.starts_with(&home.display().to_string()), "{prepared}");
    }
}

#[test]
fn apisix_is_started_with_the_code_of_its_own_place() {
    let apisix = described("apisix");
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("src/apisix");
    for folder in ["apisix/cli", "deps", "conf"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::write(home.join("conf/mime.types"), "").unwrap();
    let own = program(
        &home.join("bin/apisix"),
        "#!/bin/sh\nnginx -v\necho \"$*\" > initialised\n",
    );
    let nginx = program(&root.path().join("src/openresty/nginx/sbin/nginx"), NGINX);
    let directory = run(&apisix, &own, root.path(), &[]);
    let made = directory.join("home");
    assert_eq!(
        fs::read_link(made.join("apisix")).unwrap(),
        home.canonicalize().unwrap().join("apisix")
    );
    assert_eq!(fs::read_to_string(made.join("initialised")).unwrap(), "init\n");
    let called = fs::read_to_string(made.join("called")).unwrap();
    assert!(called.starts_with(&nginx.display().to_string()), "{called}");
    let settings = fs::read_to_string(made.join("conf/config.yaml")).unwrap();
    assert!(settings.contains("\nstream_plugins: []\n"), "{settings}");
}

#[test]
fn the_version_of_apisix_is_not_the_command_that_it_runs() {
    let root = tempfile::tempdir().unwrap();
    let text = "#!/bin/sh\necho /opt/luajit ./apisix/cli/apisix.lua version\necho 3.18.0\n";
    let own = program(&root.path().join("bin/apisix"), text);
    let version = described("apisix").print_version(&own);
    assert!(version.starts_with("3.18.0, program of "), "{version}");
}
