//! The host of a URL, where every reader of the URL sees the same one. The WHATWG parser repairs
//! much; what it had to repair is not judged, because another parser may go elsewhere.

use std::fmt;

use url::{Host, Url};

use crate::limits::MAX_PATTERN;

/// A host, or with `*.` before it all hosts below it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostPattern {
    host: Host<String>,
    below: bool,
}

impl HostPattern {
    /// Reads `example.org`, `*.example.org` (not `example.org` itself), `192.0.2.1` or `[2001:db8::1]`.
    pub(crate) fn new(text: &str) -> Result<HostPattern, &'static str> {
        const SHAPE: &str = "a host is written `example.org`, `*.example.org`, `192.0.2.1` or `[2001:db8::1]`, without port";
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        if name.is_empty() || name.ends_with('.') || name.contains('*') || text.len() > MAX_PATTERN
        {
            return Err(SHAPE);
        }
        let host = Host::parse(name).map_err(|_| SHAPE)?;
        match (&host, below) {
            (Host::Ipv4(_) | Host::Ipv6(_), true) => Err(SHAPE),
            (Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_), _) => Ok(HostPattern { host, below }),
        }
    }

    /// Whether it is one host.
    pub(crate) fn is_exact(&self) -> bool {
        !self.below
    }

    /// Whether the URL's host matches; `None` where the URL cannot be judged.
    pub(crate) fn matches(&self, url: &str) -> Option<bool> {
        let host = host(url)?;
        Some(match (&self.host, &host) {
            (Host::Domain(pattern), Host::Domain(name)) if self.below => name
                .strip_suffix(pattern.as_str())
                .and_then(|front| front.strip_suffix('.'))
                .is_some_and(|front| !front.is_empty()),
            (pattern, host) => !self.below && pattern == host,
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.below { "*." } else { "" })?;
        self.host.fmt(f)
    }
}

/// The host of a URL of a web scheme, spelled so that there is one reading of it.
fn host(text: &str) -> Option<Host<String>> {
    // Backslashes, spaces and controls are where the parsers of URLs part ways.
    if text
        .chars()
        .any(|c| c == '\\' || c.is_whitespace() || c.is_control())
    {
        return None;
    }
    let after = text.split_once("://")?.1;
    if after.is_empty() || after.starts_with('/') {
        return None;
    }
    let authority = after.split(['/', '?', '#']).next()?;
    let url = Url::parse(text).ok()?;
    let web = matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp");
    if !web || authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let host = url.host()?.to_owned();
    match &host {
        Host::Domain(name) if name.ends_with('.') => None,
        Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => Some(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_exact_and_a_star_covers_what_is_below() {
        for (pattern, url, expected) in [
            ("example.org", "https://example.org/x", Some(true)),
            ("example.org", "https://EXAMPLE.org:8443", Some(true)),
            ("EXAMPLE.org", "https://example.org", Some(true)),
            ("example.org", "https://www.example.org", Some(false)),
            ("example.org", "https://example.org.evil.net", Some(false)),
            ("*.example.org", "https://www.example.org", Some(true)),
            ("*.example.org", "https://a.b.example.org", Some(true)),
            ("*.example.org", "https://example.org", Some(false)),
            ("*.example.org", "https://notexample.org", Some(false)),
            ("127.0.0.1", "http://0x7f.1/", Some(true)),
            ("[::1]", "http://[::1]:80/", Some(true)),
            (
                "bücher.example",
                "https://xn--bcher-kva.example/",
                Some(true),
            ),
            ("example.org", "https://%65xample.org/", Some(true)),
            ("example.org", "https://u@example.org/", None),
            ("example.org", "https://u:p@example.org/", None),
            ("example.org", "https://@example.org/", None),
            ("example.org", "https://example.org./", None),
            ("example.org", "https://example.org\\@evil.net/", None),
            ("example.org", "https:example.org", None),
            ("example.org", "https:///example.org", None),
            ("example.org", " https://example.org", None),
            ("example.org", "https://exam\tple.org", None),
            ("example.org", "ssh://example.org/", None),
            ("example.org", "file:///etc/passwd", None),
            ("example.org", "example.org", None),
            ("example.org", "", None),
        ] {
            let matched = HostPattern::new(pattern).unwrap().matches(url);
            assert_eq!(matched, expected, "{pattern} {url}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in [
            "",
            "*",
            "*.",
            "a.*",
            "*.*.org",
            "example.org.",
            "example.org:80",
            "https://example.org",
            "*.127.0.0.1",
            "a b",
        ] {
            assert!(HostPattern::new(bad).is_err(), "{bad}");
        }
    }
}
