//! Developer portals: what each one shows, how it looks, who may sign up, and its pages.

use super::definition::Visibility;
use super::is_default;
use serde::{Deserialize, Serialize};

/// A portal. It is chosen by the host that a browser asks for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Portal {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "is_default")]
    pub display_name: String,
    /// Its description, in one sentence.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Its logo: the text of an SVG, or a PNG as `data:image/png;base64,…`, at most 64 KiB.
    #[serde(skip_serializing_if = "is_default")]
    pub logo: String,
    /// The hosts that it answers; empty: all that no other portal answers.
    #[serde(skip_serializing_if = "is_default")]
    pub hosts: Vec<String>,
    /// Its URL as browsers see it, such as `https://developers.example.com`, for links in mails and in catalogues.
    #[serde(skip_serializing_if = "is_default")]
    pub url: String,
    /// The environments whose publications it shows; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub environments: Vec<String>,
    /// The APIs that it shows; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub apis: Vec<String>,
    /// APIs that its first page names.
    #[serde(skip_serializing_if = "is_default")]
    pub featured: Vec<String>,
    /// The Markdown of its first page.
    #[serde(skip_serializing_if = "is_default")]
    pub home: String,
    /// The rules for signing up.
    pub sign_up: SignUp,
    /// Identity providers through which developers sign in.
    #[serde(skip_serializing_if = "is_default")]
    pub providers: Vec<SignInProvider>,
    /// How it looks.
    #[serde(skip_serializing_if = "is_default")]
    pub theme: Theme,
    /// Links at the end of each page.
    #[serde(skip_serializing_if = "is_default")]
    pub footer: Vec<Link>,
}

impl Portal {
    /// The name of the one that there is before any is made.
    pub const DEFAULT: &str = "default";
}

/// Who may sign up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SignUpMode {
    /// Everyone who confirms a mail address.
    #[default]
    Open,
    /// People whom a team has invited.
    Invited,
    /// Only developers that an administrator of the portal creates.
    Closed,
}

/// Rules of signing up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SignUp {
    /// Who may.
    pub mode: SignUpMode,
    /// Whether each one needs approval.
    #[serde(skip_serializing_if = "is_default")]
    pub approval: bool,
    /// Domains of mail addresses that are accepted; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub domains: Vec<String>,
    /// Mail addresses of approvers: they get a mail when a developer waits for approval.
    #[serde(skip_serializing_if = "is_default")]
    pub notify: Vec<String>,
}

/// An identity provider through which developers sign in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SignInProvider {
    /// Its name among the identity providers of this Weir.
    pub name: String,
    /// Teams whose members come from its groups.
    #[serde(skip_serializing_if = "is_default")]
    pub teams: Vec<GroupTeam>,
}

/// A team whose members come from a group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GroupTeam {
    /// The group, as the provider calls it.
    pub group: String,
    /// The name of the team. It is made if it is not there.
    pub team: String,
    /// Their role in it.
    pub role: RoleInTeam,
}

/// The role of a member of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoleInTeam {
    /// Sees its applications.
    Viewer,
    /// Changes its applications, too.
    #[default]
    Member,
    /// Invites and removes, too.
    Owner,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Its text.
    pub title: String,
    /// `https://…`, or a path of the portal such as `/pages/terms`.
    pub to: String,
}

/// How a portal looks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Theme {
    /// Colours of the light theme.
    #[serde(skip_serializing_if = "is_default")]
    pub light: Colours,
    /// Colours of the dark theme.
    #[serde(skip_serializing_if = "is_default")]
    pub dark: Colours,
    /// The typeface.
    #[serde(skip_serializing_if = "is_default")]
    pub font: Font,
}

/// Typefaces that systems have; none is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Font {
    /// That of the system.
    #[default]
    System,
    /// With serifs.
    Serif,
    /// Rounded.
    Rounded,
    /// All letters equally wide.
    Mono,
}

/// Colours as `#rrggbb`; an empty one is Weir's own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Colours {
    /// Links, buttons and what is chosen.
    #[serde(skip_serializing_if = "is_default")]
    pub accent: String,
    /// Background of the page.
    #[serde(skip_serializing_if = "is_default")]
    pub canvas: String,
    /// Background of cards and fields.
    #[serde(skip_serializing_if = "is_default")]
    pub surface: String,
    /// Text.
    #[serde(skip_serializing_if = "is_default")]
    pub ink: String,
}

/// A page of a portal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Page {
    /// The portal.
    pub portal: String,
    /// Its name, in its path.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its Markdown.
    pub body: String,
    /// Callers that may see it.
    pub visibility: Visibility,
    /// The API that it belongs to; absent: it belongs to the portal.
    #[serde(skip_serializing_if = "is_default")]
    pub api: Option<String>,
    /// Whether the menu names it.
    #[serde(skip_serializing_if = "is_default")]
    pub menu: bool,
    /// Its place among pages, lowest first.
    #[serde(skip_serializing_if = "is_default")]
    pub order: u32,
    /// Whether it is shown to those who may see it.
    pub published: bool,
}
