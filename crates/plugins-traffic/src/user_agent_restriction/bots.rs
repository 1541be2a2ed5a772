//! Programs that are known to go through sites by themselves, by what they call themselves.

use regex::bytes::{Regex, RegexBuilder};
use std::sync::LazyLock;

/// What their names have in common.
const FORMS: &[&str] = &[
    // `Example-Bot/1.0`, `news indexer 2`
    r"(?:[Aa]rchiver|[Ii]ndexer|[Ss]craper|[Bb]ot|[Ss]pider|[Cc]rawl[a-z]*)[ /-]v?\d",
    r"(?i:spider|crawl)",
    r"[Ss]crape",
    r"(?i:favicon)",
    r" PTST/\d",
];

/// Names without such a form, or without a version behind it.
const NAMES: &[&str] = &[
    "008/",
    "AdsBot-Google",
    "Accoona",
    "Altresium/",
    "Apache-HttpClient",
    "AppEngine-Google",
    "Ask Jeeves",
    "BUbiNG",
    "BingPreview",
    "BlogBridge",
    "Bloglovin",
    "BoardReader",
    "Boto/",
    "Boto3/",
    "BotSeer",
    "Catchpoint",
    "Charlotte",
    "Checklinks",
    "DataparkSearch/",
    "Daumoa",
    "Facebot",
    "Feedbin",
    "Flamingo_SearchEngine",
    "FollowSite Bot",
    "Genieo",
    "Go-http-client",
    "GomezAgent",
    "Google SketchUp",
    "Google-HTTP-Java-Client",
    "Googlebot",
    "Grub/",
    "HttpMonitor",
    "ICC-Crawler",
    "IconSurf",
    "IlTrovatore",
    "InternetArchive",
    "JNLP",
    "KaloogaBot",
    "Kraken",
    "LinkAider",
    "LinkedInBot",
    "Linguee Bot",
    "Lite Bot",
    "MJ12bot",
    "MSIECrawler",
    "Mail.RU_Bot",
    "Mediapartners-Google",
    "Netvibes",
    "NewsGator",
    "Nutch",
    "Orbiter",
    "PagePeeker",
    "PaxleFramework",
    "Pingdom.com_bot_version_",
    "Python-urllib",
    "Qwantify",
    "Riddler",
    "Rival IQ",
    "Scrapy",
    "Scrubby",
    "SemrushBot",
    "SimplePie",
    "SiteCon",
    "Slack-ImgProxy",
    "Slackbot-LinkExpanding",
    "Slurp",
    "Speedy Spider",
    "Squrl Java",
    "TLSProber",
    "Thumbshots",
    "ThumbShotsBot",
    "Tiny Tiny RSS",
    "Twitterbot",
    "URL2PNG",
    "Vagabondo",
    "VoilaBot",
    "WASALive",
    "Web-sniffer",
    "WebThumb",
    "WhatWeb",
    "WhatsApp",
    "WinHTTP",
    "WordPress",
    "Wotbox",
    "Xenu",
    "Yahoo! Slurp",
    "YahooSeeker",
    "YandexBot",
    "YandexImages",
    "YandexMobileBot",
    "Yeti",
    "YodaoBot",
    "YottaaMonitor",
    "ZooShot",
    "ZyBorg",
    "aihttp",
    "altavista",
    "archive.org_bot",
    "aws-cli/",
    "axios",
    "bingbot",
    "blitzbot",
    "boitho.com-dc",
    "facebookexternalhit/",
    "findlinks",
    "gigabot",
    "gsa-crawler",
    "heritrix",
    "holmes",
    "htdig",
    "http%20client",
    "ia_archiver",
    "ichiro",
    "larbin",
    "lycos",
    "masscan",
    "mogimogi",
    "msnbot",
    "netresearch",
    "okhttp",
    "reqwest",
    "s3fs/",
    "scalaj-http",
    "scooter",
    "searchsight",
    "seekbot",
    "semanticdiscovery",
    "unirest-",
    "yacybot",
];

/// Whether a program is known.
pub(super) fn is_bot(agent: &[u8]) -> bool {
    static KNOWN: LazyLock<(Regex, Regex)> = LazyLock::new(|| {
        let names: Vec<String> = NAMES.iter().map(|name| regex::escape(name)).collect();
        (any_of(&names.join("|")), any_of(&FORMS.join("|")))
    });
    let (names, forms) = &*KNOWN;
    names.is_match(agent) || forms.is_match(agent)
}

fn any_of(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .unicode(false)
        .build()
        .expect("invariant: the expressions are constants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_are_distinguished_from_other_programs() {
        for (agent, expected) in [
            ("Scrapy/1.0", true),
            ("bingbot/2.0", true),
            ("SemrushBot", true),
            (
                "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
                true,
            ),
            ("facebookexternalhit/1.1", true),
            ("Twitterbot/1.0", true),
            ("my-Bot/3", true),
            ("news crawler", true),
            ("SPIDER", true),
            ("Go-http-client/1.1", true),
            ("curl/7.1.0", false),
            ("Wget/1.20", false),
            ("python-requests/2.0", false),
            ("robot", false),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0 Safari/537.36",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(is_bot(agent.as_bytes()), expected, "{agent}");
        }
    }
}
