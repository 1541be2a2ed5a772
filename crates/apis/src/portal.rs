//! Whether a portal and its pages are good: names, hosts, links, and colours that people can read.

use crate::entities::{Colours, Link, Page, Portal, Theme};
use crate::{logo, naming};

/// The least contrast between text and its background (WCAG 2.2, 1.4.3).
pub const LEAST_CONTRAST: f64 = 4.5;
/// The longest Markdown of a page, in bytes.
pub const MAX_PAGE: usize = 1 << 20;

/// A fault: the place and the message.
pub type FieldError = (String, String);

/// Colours as they are used: a theme's own, and Weir's for those that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette<'t> {
    /// Links and buttons.
    pub accent: &'t str,
    /// Background of the page.
    pub canvas: &'t str,
    /// Behind cards.
    pub surface: &'t str,
    /// Text.
    pub ink: &'t str,
}

/// Weir's own colours, light and dark. `console/src/ui/tokens.css` has the same.
pub const STANDARD: [Palette<'static>; 2] = [
    Palette {
        accent: "#0a6685",
        canvas: "#f6f8f9",
        surface: "#ffffff",
        ink: "#15222b",
    },
    Palette {
        accent: "#63c3e2",
        canvas: "#0f1519",
        surface: "#161d23",
        ink: "#e8eef1",
    },
];

fn own_or<'t>(own: &'t str, standard: &'static str) -> &'t str {
    if own.is_empty() { standard } else { own }
}

fn palette<'t>(colours: &'t Colours, standard: &Palette<'static>) -> Palette<'t> {
    Palette {
        accent: own_or(&colours.accent, standard.accent),
        canvas: own_or(&colours.canvas, standard.canvas),
        surface: own_or(&colours.surface, standard.surface),
        ink: own_or(&colours.ink, standard.ink),
    }
}

/// The colours of a theme, light and dark.
pub fn palettes(theme: &Theme) -> [Palette<'_>; 2] {
    [
        palette(&theme.light, &STANDARD[0]),
        palette(&theme.dark, &STANDARD[1]),
    ]
}

/// A colour's red, green and blue.
fn channels(colour: &str) -> Option<[u8; 3]> {
    let digits = colour.strip_prefix('#').filter(|it| it.len() == 6)?;
    if !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let channel = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    Some([channel(0)?, channel(2)?, channel(4)?])
}

/// How bright a colour is to the eye, 0 to 1 (WCAG 2.2).
fn luminance(colour: &str) -> Option<f64> {
    let linear = |channel: u8| {
        let share = f64::from(channel) / 255.0;
        match share <= 0.04045 {
            true => share / 12.92,
            false => ((share + 0.055) / 1.055).powf(2.4),
        }
    };
    let [red, green, blue] = channels(colour)?;
    Some(0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue))
}

/// The contrast of two colours, 1 to 21; `None`: one is no colour.
pub fn contrast(one: &str, other: &str) -> Option<f64> {
    let (one, other) = (luminance(one)?, luminance(other)?);
    Some((one.max(other) + 0.05) / (one.min(other) + 0.05))
}

/// Black or white: what can be read on a colour.
pub fn ink_on(colour: &str) -> &'static str {
    let of = |ink| contrast(ink, colour).unwrap_or(1.0);
    if of("#ffffff") >= of("#000000") {
        "#ffffff"
    } else {
        "#000000"
    }
}

/// The faults of the colours of a theme.
pub fn theme_faults(theme: &Theme) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let [light, dark] = palettes(theme);
    for (name, palette) in [("light", light), ("dark", dark)] {
        let all = [
            ("accent", palette.accent),
            ("canvas", palette.canvas),
            ("surface", palette.surface),
            ("ink", palette.ink),
        ];
        let wrong = all.iter().filter(|(_, colour)| channels(colour).is_none());
        faults.extend(wrong.map(|(field, colour)| {
            let message = format!("'{colour}' is not a valid colour: expected one such as '#0a6685'");
            (format!("theme.{name}.{field}"), message)
        }));
        for (field, text) in [("ink", palette.ink), ("accent", palette.accent)] {
            for (behind, colour) in [("canvas", palette.canvas), ("surface", palette.surface)] {
                if let Some(ratio) = contrast(text, colour).filter(|it| *it < LEAST_CONTRAST) {
                    let message = format!(
                        "the contrast of {text} on the {behind} {colour} is {ratio:.2}: expected at least \
                         {LEAST_CONTRAST}"
                    );
                    faults.push((format!("theme.{name}.{field}"), message));
                }
            }
        }
    }
    faults
}

fn link_fault(place: String, link: &Link) -> Option<FieldError> {
    let is_good = link.to.starts_with("https://")
        || link.to.starts_with("http://")
        || link.to.starts_with("mailto:")
        || (link.to.starts_with('/') && !link.to.starts_with("//"));
    let message = format!(
        "'{}' is not a valid link: expected https://… or a path such as /apis",
        link.to
    );
    (!is_good).then_some((place, message))
}

/// The faults of a portal. `others` are the other portals.
pub fn portal_faults(portal: &Portal, others: &[Portal]) -> Vec<FieldError> {
    let mut faults = theme_faults(&portal.theme);
    faults.extend(logo::fault(&portal.logo).map(|message| ("logo".to_owned(), message)));
    let is_url = |it: &str| it.starts_with("https://") || it.starts_with("http://");
    if !portal.url.is_empty() && !is_url(&portal.url) {
        let message = format!(
            "'{}' is not a valid URL: expected one such as https://developers.example.com",
            portal.url
        );
        faults.push(("url".to_owned(), message));
    }
    for (index, host) in portal.hosts.iter().enumerate() {
        let place = format!("hosts[{index}]");
        let is_host = !host.is_empty()
            && host
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b".-[]:".contains(&it));
        if !is_host {
            faults.push((
                place,
                format!("'{host}' is not a valid host: expected one such as developers.example.com"),
            ));
        } else if let Some(other) = others
            .iter()
            .find(|it| it.name != portal.name && it.hosts.contains(host))
        {
            faults.push((place, format!("the portal '{}' answers '{host}'", other.name)));
        }
    }
    if portal.hosts.is_empty()
        && let Some(other) = others
            .iter()
            .find(|it| it.name != portal.name && it.hosts.is_empty())
    {
        let message = format!(
            "the portal '{}' answers all hosts that no other one answers: give hosts to one of them",
            other.name
        );
        faults.push(("hosts".to_owned(), message));
    }
    for (index, domain) in portal.sign_up.domains.iter().enumerate() {
        if domain.contains('@') || !domain.contains('.') {
            let message = format!("'{domain}' is not a valid domain: expected one such as example.com");
            faults.push((format!("sign_up.domains[{index}]"), message));
        }
    }
    for (index, address) in portal.sign_up.notify.iter().enumerate() {
        let is_address = address.split_once('@').is_some_and(|(name, domain)| {
            !name.is_empty() && domain.contains('.') && !address.contains(char::is_whitespace)
        });
        if !is_address {
            let message =
                format!("'{address}' is not a valid mail address: expected one such as ops@example.com");
            faults.push((format!("sign_up.notify[{index}]"), message));
        }
    }
    for (index, provider) in portal.providers.iter().enumerate() {
        let is_twice = portal.providers[..index]
            .iter()
            .any(|it| it.name == provider.name);
        if is_twice {
            let message = format!("the provider '{}' is named twice", provider.name);
            faults.push((format!("providers[{index}].name"), message));
        }
        for (place, team) in provider.teams.iter().enumerate() {
            if team.group.is_empty() || team.team.trim().is_empty() || team.team.chars().count() > 80 {
                let message = "expected a group, and a team's name of 1 to 80 characters".to_owned();
                faults.push((format!("providers[{index}].teams[{place}]"), message));
            }
        }
    }
    let links = portal.footer.iter().enumerate();
    faults.extend(links.filter_map(|(index, link)| link_fault(format!("footer[{index}].to"), link)));
    if portal.home.len() > MAX_PAGE {
        faults.push(("home".to_owned(), format!("expected at most {MAX_PAGE} bytes")));
    }
    faults
}

/// The faults of a page.
pub fn page_faults(page: &Page) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if !naming::is_name(&page.name) {
        faults.push((
            "name".to_owned(),
            format!(
                "'{}' is not a valid name: expected {}",
                page.name,
                naming::EXPECTED_NAME
            ),
        ));
    }
    if page.title.trim().is_empty() {
        faults.push(("title".to_owned(), "expected a title".to_owned()));
    }
    if page.body.len() > MAX_PAGE {
        faults.push(("body".to_owned(), format!("expected at most {MAX_PAGE} bytes")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::{Colours, SignUp};

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        for (one, other, expected) in [
            ("#000000", "#ffffff", 21.0),
            ("#777777", "#ffffff", 4.48),
            ("#0a6685", "#f6f8f9", 6.04),
            ("#ffffff", "#ffffff", 1.0),
        ] {
            let found = contrast(one, other).expect("colours");
            assert!((found - expected).abs() < 0.1, "{one} {other}: {found}");
        }
        assert_eq!(contrast("red", "#ffffff"), None);
        assert_eq!((ink_on("#0a6685"), ink_on("#63c3e2")), ("#ffffff", "#000000"));
    }

    /// 40
    #[test]
    fn colours_that_cannot_be_read_are_refused_with_their_contrast() {
        assert_eq!(theme_faults(&Theme::default()), []);
        let theme = |accent: &str| Theme {
            light: Colours {
                accent: accent.to_owned(),
                ..Colours::default()
            },
            ..Theme::default()
        };
        assert_eq!(theme_faults(&theme("#005f8a")), []);
        let faults = theme_faults(&theme("#cccccc"));
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[1].0 == "theme.light.accent" && faults[1].1.contains("1.61"),
            "{faults:?}"
        );
        assert!(theme_faults(&theme("red"))[0].1.contains("not a valid colour"));
    }

    #[test]
    fn portals_are_checked() {
        let portal = |name: &str, hosts: &[&str]| Portal {
            name: name.to_owned(),
            hosts: hosts.iter().map(|it| (*it).to_owned()).collect(),
            ..Portal::default()
        };
        let others = [portal("one", &["a.test"]), portal("all", &[])];
        for (portal, expected) in [
            (portal("two", &["b.test"]), ""),
            (portal("one", &["a.test"]), ""),
            (portal("two", &["a.test"]), "the portal 'one' answers 'a.test'"),
            (portal("two", &["A B"]), "not a valid host"),
            (portal("two", &[]), "the portal 'all' answers all hosts"),
            (
                Portal {
                    url: "example.com".to_owned(),
                    ..portal("one", &["a.test"])
                },
                "not a valid URL",
            ),
            (
                Portal {
                    sign_up: SignUp {
                        domains: vec!["@example.com".to_owned()],
                        ..SignUp::default()
                    },
                    ..portal("one", &["a.test"])
                },
                "not a valid domain",
            ),
            (
                Portal {
                    sign_up: SignUp {
                        notify: vec!["ops".to_owned()],
                        ..SignUp::default()
                    },
                    ..portal("one", &["a.test"])
                },
                "not a valid mail address",
            ),
            (
                Portal {
                    footer: vec![Link {
                        title: "x".to_owned(),
                        to: "javascript:alert(1)".to_owned(),
                    }],
                    ..portal("one", &["a.test"])
                },
                "not a valid link",
            ),
        ] {
            let faults = portal_faults(&portal, &others);
            match expected {
                "" => assert_eq!(faults, []),
                expected => assert!(faults[0].1.contains(expected), "{faults:?}"),
            }
        }
        let page = Page {
            name: "a b".to_owned(),
            ..Page::default()
        };
        assert_eq!(page_faults(&page).len(), 2);
    }
}
