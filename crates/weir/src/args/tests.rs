//! The command line is whole, and what the documentation says of it holds.

use super::*;
use clap::{Arg, ArgAction, CommandFactory};
use std::path::Path;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

fn run_flags() -> Vec<Arg> {
    let command = Cli::command();
    let run = command.find_subcommand("run").expect("a command");
    run.get_arguments()
        .filter(|flag| {
            flag.get_long()
                .is_some_and(|long| !matches!(long, "help" | "version"))
        })
        .cloned()
        .collect()
}

#[test]
fn every_flag_of_run_has_an_environment_variable() {
    for flag in run_flags() {
        let long = flag.get_long().expect("a flag");
        let wanted = format!("WEIR_{}", long.replace('-', "_").to_uppercase());
        assert_eq!(flag.get_env(), Some(std::ffi::OsStr::new(&wanted)), "--{long}");
    }
}

#[test]
fn everything_has_a_help_text() {
    fn look(command: &clap::Command, silent: &mut Vec<String>) {
        let name = command.get_name();
        if command.get_about().is_none() {
            silent.push(name.to_owned());
        }
        let arguments = command.get_arguments().filter(|it| it.get_help().is_none());
        silent.extend(arguments.map(|it| format!("{name} {}", it.get_id())));
        for inner in command.get_subcommands() {
            look(inner, silent);
        }
    }
    let mut silent = Vec::new();
    look(&Cli::command(), &mut silent);
    assert!(silent.is_empty(), "{silent:?}");
}

fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The tables of docs/operations.md have a row for each flag of `weir run`, with its variable and its default.
#[test]
fn flags_and_their_defaults_are_documented() {
    let guide = read(&repository().join("docs/operations.md"));
    let mut wrong = Vec::new();
    for flag in run_flags() {
        let long = flag.get_long().expect("a flag");
        let is_named = |cell: &str| {
            let mut quoted = cell.split('`').skip(1).step_by(2);
            quoted.any(|code| code.split(' ').next() == Some(&format!("--{long}")))
        };
        let rows = guide.lines().filter_map(|line| line.strip_prefix("| "));
        // A `|` within a cell is written `\|`.
        let rows = rows.map(|row| row.replace("\\|", "/"));
        let variable = flag.get_env().and_then(|it| it.to_str()).expect("a variable");
        let is_documented =
            |cells: &[String]| cells.iter().any(|cell| cell.contains(&format!("`{variable}`")));
        let row = rows
            .map(|row| row.split('|').map(str::to_owned).collect::<Vec<_>>())
            .find(|cells| cells.first().is_some_and(|first| is_named(first)) && is_documented(cells));
        let Some(row) = row else {
            wrong.push(format!("no row for --{long} and {variable}"));
            continue;
        };
        if matches!(flag.get_action(), ArgAction::SetTrue) {
            continue;
        }
        for default in flag.get_default_values().iter().filter_map(|it| it.to_str()) {
            if !row.iter().any(|cell| cell.contains(default)) {
                wrong.push(format!(
                    "--{long}: its default is {default}, the table says {row:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/operations.md: {wrong:#?}");
}

/// A call of `weir` in a line for a shell, as words; `None`: the line calls something else.
fn call_of(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), character) if open == character => quote = None,
            (Some(_), character) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            // What comes behind is for the shell.
            (None, '#' | '|' | '>' | '<' | '&' | ';') if word.is_none() => break,
            (None, ';' | '|' | '>') => break,
            (None, ' ') => words.extend(word.take()),
            (None, character) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    let is_setting =
        |word: &String| word.contains('=') && word.starts_with(|it: char| it.is_ascii_uppercase());
    let start = words.iter().take_while(|word| is_setting(word)).count();
    let mut call = words.split_off(start);
    let program = call.first_mut()?;
    (program == "weir" || program.ends_with("/weir")).then_some(call)
}

/// The calls of `weir` in blocks for a shell, each with the line that it begins at.
fn calls_in(text: &str) -> Vec<(usize, Vec<String>)> {
    let (mut calls, mut is_shell, mut begun) = (Vec::new(), false, String::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_shell = line.trim() == "```sh";
        } else if is_shell {
            begun.push_str(line.trim_end());
            if begun.ends_with('\\') {
                begun.pop();
                continue;
            }
            calls.extend(call_of(&std::mem::take(&mut begun)).map(|call| (number, call)));
        }
    }
    calls
}

fn documents(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|it| it == "md") {
            found.push(path);
        }
    }
}

#[test]
fn calls_in_the_documentation_are_understood() {
    let root = repository();
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    documents(&root.join("docs"), &mut pages);
    documents(&root.join("tests"), &mut pages);
    let (mut count, mut wrong) = (0, Vec::new());
    let mut look = |place: String, mut call: Vec<String>| {
        count += 1;
        // A page sets it before.
        for word in call.iter_mut().filter(|it| *it == "$WEIR_URL") {
            *word = "http://127.0.0.1:8002".to_owned();
        }
        if let Err(error) = Cli::try_parse_from(&call)
            && error.exit_code() != 0
            // A flag that reads its file at once misses the reader's file here.
            && !error.to_string().contains("No such file")
        {
            wrong.push(format!("{place}: {call:?}: {error}"));
        }
    };
    for page in pages {
        for (line, call) in calls_in(&read(&page)) {
            look(format!("{}:{line}", page.display()), call);
        }
    }
    // The help's own examples, each with a remark behind two spaces.
    let mut helps: Vec<String> = vec![EXAMPLES.to_owned()];
    helps.extend(
        Cli::command()
            .get_subcommands()
            .filter_map(|it| Some(it.get_after_help()?.to_string())),
    );
    for help in helps {
        for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
            let call = line.split("  ").next().unwrap_or_default();
            if let Some(call) = call_of(call) {
                look("--help".to_owned(), call);
            }
        }
    }
    assert!(count > 30, "only {count} calls: are they found?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_that_are_refused_say_what_is_expected() {
    for (flags, expected) in [
        (
            "run --listen 8000",
            "expected ADDRESS:PORT, such as 127.0.0.1:8000",
        ),
        (
            "run --listen-tls localhost:8443",
            "expected ADDRESS:PORT, such as 127.0.0.1:8000",
        ),
        (
            "run --status :8007",
            "expected ADDRESS:PORT, such as 127.0.0.1:8000",
        ),
        ("run --workers 0", "expected a number from 1"),
        (
            "run --control 127.0.0.1:8002",
            "expected a URL http://HOST:PORT/ or https://HOST/",
        ),
        (
            "explain --control ftp://h / ",
            "expected a URL http://HOST:PORT/ or https://HOST/",
        ),
        (
            "history --url localhost:8002",
            "expected a URL http://HOST:PORT/ or https://HOST/",
        ),
    ] {
        let words = ["weir"].into_iter().chain(flags.split_whitespace());
        let refused = Cli::try_parse_from(words).expect_err("refused").to_string();
        assert!(refused.contains(expected), "{flags}: {refused}");
    }
}
