//! Flags of `weir api`: the life of an API, from a terminal or a build server.

use super::RemoteArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

pub const API_EXAMPLES: &str = "\
Exit status: 0 done, 1 refused (findings, breaking changes, a conflict, no right), 2 wrong usage or no connection.

Examples:
  weir api new pets petstore.yaml
  weir api lint petstore.yaml --output junit > lint.xml
  weir api diff pets 1.0.0 --file petstore.yaml
  weir api review pets 1.0.0 --reason 'paging of lists'
  weir api review pets 1.0.0 --approve
  weir api publish pets 1.0.0 test --runtime test.json --dry-run
  weir api test pets 1.0.0 test --output junit > tests.xml
  weir api promote pets 1.0.0 test --to prod --note 'release 12'
  weir api rollback pets 1.0.0 prod
  weir api deprecate pets 1.0.0 prod --since 2026-12-01 --sunset 2027-06-01 --enforce";

/// Flags of `weir api`.
#[derive(Debug, Args)]
pub struct ApiArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ApiCommand,
}

/// What to do with an API.
#[derive(Debug, Subcommand)]
pub enum ApiCommand {
    /// Create an API and a version from a document, or change the draft of the version.
    New {
        /// The API's name.
        api: String,
        /// An OpenAPI document or a Postman collection.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The version [default: the document's].
        #[arg(long = "api-version", id = "api_version", value_name = "VERSION")]
        version: Option<String>,
        /// How and where.
        #[command(flatten)]
        on: OnServer,
    },
    /// Lint a document, without a server.
    Lint(LintArgs),
    /// Compare revisions, or a document with the draft. Exit status 1 if callers would break.
    Diff {
        /// The API and its version.
        #[command(flatten)]
        of: VersionArgs,
        /// The older revision [default: the newest].
        #[arg(long, value_name = "N")]
        from: Option<u32>,
        /// The newer revision [default: the draft].
        #[arg(long, value_name = "N")]
        to: Option<u32>,
        /// A document to compare with the draft instead.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to"])]
        file: Option<PathBuf>,
        /// How and where.
        #[command(flatten)]
        on: OnServer,
    },
    /// Ask another person to look at a draft, or say what came of it. Exit status 1 if that is refused.
    Review(ReviewArgs),
    /// Run the tests of a version against its draft, a revision or what is published. Exit status 1 if one fails.
    Test {
        /// The publication.
        #[command(flatten)]
        of: PublicationArgs,
        /// A revision [default: the draft].
        #[arg(long, value_name = "N", conflicts_with = "published")]
        revision: Option<u32>,
        /// Test what is published there.
        #[arg(long, conflicts_with = "runtime")]
        published: bool,
        /// A JSON file with the settings for this environment [default: unchanged].
        #[arg(long, value_name = "FILE")]
        runtime: Option<PathBuf>,
        /// Run only this test. Repeat the flag for several.
        #[arg(long = "only", value_name = "NAME")]
        names: Vec<String>,
        /// The form of the output.
        #[arg(long, value_enum, default_value_t = LintOutput::Text)]
        output: LintOutput,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Publish a revision to an environment.
    Publish {
        /// The publication.
        #[command(flatten)]
        of: PublicationArgs,
        /// The revision [default: a new one, made from the draft].
        #[arg(long, value_name = "N")]
        revision: Option<u32>,
        /// A JSON file with the settings for this environment [default: unchanged].
        #[arg(long, value_name = "FILE")]
        runtime: Option<PathBuf>,
        /// Remove the routes that the version was adopted from, in the same commit.
        #[arg(long)]
        take_over: bool,
        /// How a step is made.
        #[command(flatten)]
        step: StepArgs,
        /// How and where.
        #[command(flatten)]
        on: OnServer,
    },
    /// Publish the same revision to another environment.
    Promote {
        /// The publication.
        #[command(flatten)]
        of: PublicationArgs,
        /// The environment to publish to.
        #[arg(long, value_name = "ENVIRONMENT")]
        to: String,
        /// A JSON file with the settings for that environment [default: unchanged].
        #[arg(long, value_name = "FILE")]
        runtime: Option<PathBuf>,
        /// How a step is made.
        #[command(flatten)]
        step: StepArgs,
        /// How and where.
        #[command(flatten)]
        on: OnServer,
    },
    /// Publish an older revision.
    Rollback {
        /// The publication.
        #[command(flatten)]
        of: PublicationArgs,
        /// The revision [default: the previous one].
        #[arg(long, value_name = "N")]
        revision: Option<u32>,
        /// How a step is made.
        #[command(flatten)]
        step: StepArgs,
        /// How and where.
        #[command(flatten)]
        on: OnServer,
    },
    /// Announce to all callers that a version will end.
    Deprecate {
        /// The publication.
        #[command(flatten)]
        of: PublicationArgs,
        /// The date from which it is deprecated, such as 2026-12-01, or seconds since 1970 [default: what was given
        /// before, or now].
        #[arg(long, value_name = "DATE")]
        since: Option<String>,
        /// The date on which it ends, in the same form.
        #[arg(long, value_name = "DATE")]
        sunset: Option<String>,
        /// The URL of a page about it.
        #[arg(long, value_name = "URL")]
        link: Option<String>,
        /// The URL of the version that replaces it.
        #[arg(long, value_name = "URL")]
        successor: Option<String>,
        /// Answer 410 from --sunset on.
        #[arg(long, requires = "sunset")]
        enforce: bool,
        /// Why.
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        /// Only print what would change.
        #[arg(long)]
        dry_run: bool,
        /// How and where.
        #[command(flatten)]
        on: OnServer,
    },
    /// Remove a publication. Exit status 1 if subscriptions depend on it.
    Remove {
        /// The publication.
        #[command(flatten)]
        of: PublicationArgs,
        /// Remove it although subscriptions depend on it. Their applications are notified.
        #[arg(long)]
        force: bool,
        /// Only say whether it would be refused.
        #[arg(long)]
        dry_run: bool,
        /// Which Weir.
        #[command(flatten)]
        remote: RemoteArgs,
    },
}

/// A version.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// The API.
    pub api: String,
    /// The version.
    #[arg(id = "api_version", value_name = "VERSION")]
    pub version: String,
}

/// A publication.
#[derive(Debug, Args)]
pub struct PublicationArgs {
    /// The API.
    pub api: String,
    /// The version.
    #[arg(id = "api_version", value_name = "VERSION")]
    pub version: String,
    /// The environment.
    pub environment: String,
}

/// How a step is made.
#[derive(Debug, Args)]
pub struct StepArgs {
    /// Why.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
    /// Publish even if callers break, or another publication takes the same calls.
    #[arg(long)]
    pub force: bool,
    /// Publish even if tests of the version fail, for this reason.
    #[arg(long, value_name = "REASON")]
    pub override_tests: Option<String>,
    /// The id of an approval.
    #[arg(long, value_name = "ID")]
    pub approval: Option<String>,
    /// Only print what would change.
    #[arg(long)]
    pub dry_run: bool,
}

/// Flags of `weir api review`.
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// The API and its version.
    #[command(flatten)]
    pub of: VersionArgs,
    /// Approve what the draft holds.
    #[arg(long, conflicts_with_all = ["ask_changes", "withdraw"])]
    pub approve: bool,
    /// Ask for changes; --reason says for which.
    #[arg(long, requires = "reason", conflicts_with = "withdraw")]
    pub ask_changes: bool,
    /// Take back that you have asked.
    #[arg(long)]
    pub withdraw: bool,
    /// What it is about, or why.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How and where.
    #[command(flatten)]
    pub on: OnServer,
}

/// Flags of `weir api lint`.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// An OpenAPI document.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A file with severities of rules, in Spectral's format.
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The path under which the API will be published.
    #[arg(long, value_name = "PATH")]
    pub base_path: Option<String>,
    /// Exit with 1 if there is a finding of this level or a more severe one.
    #[arg(long, value_enum, default_value_t = LevelArg::Error)]
    pub fail_on: LevelArg,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = LintOutput::Text)]
    pub output: LintOutput,
}

/// How severe a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// The document is wrong.
    Error,
    /// It can be used.
    Warn,
    /// Worth knowing.
    Info,
    /// A matter of taste.
    Hint,
}

/// What a lint or a run of tests prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintOutput {
    /// Lines for people.
    Text,
    /// JSON.
    Json,
    /// A JUnit report.
    Junit,
}

/// What a command prints, and which Weir it asks.
#[derive(Debug, Args)]
pub struct OnServer {
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Which Weir.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people.
    Text,
    /// The answer of the API, as it came.
    Json,
}
