//! The places at which a drive is reached: addresses as `unix:PATH` and `tcp:HOST:PORT`, and a folder.

use fulgurite_base::SpecError;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Parses a host and a port, of which `usual` is an example. Addresses that other machines can reach are refused unless
/// `remote` is true, because anyone there could do `harm`.
pub(crate) fn host(at: &str, usual: &str, harm: &str, remote: bool) -> Result<SocketAddr, SpecError> {
    let found = at.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    let address =
        found.ok_or_else(|| SpecError::new(format!("`{at}` is no host and port; accepted: {usual}")))?;
    if !remote && !address.ip().is_loopback() {
        let before = usual.trim_end_matches(|part: char| part.is_ascii_digit());
        return Err(SpecError::new(format!(
            "{address} can be reached from other machines, and anyone there could {harm}; accepted: {before}{}, or \
                --remote to allow it",
            address.port()
        )));
    }
    Ok(address)
}

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

impl Address {
    /// Parses an address. Addresses that other machines can reach are refused unless `remote` is true.
    pub(crate) fn parse(text: &str, remote: bool) -> Result<Address, SpecError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            // Programs in other folders must find the socket by the URI.
            let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
            return Ok(Address::Unix(path));
        }
        let Some(at) = text.strip_prefix("tcp:") else {
            return Err(SpecError::new(format!(
                "`{text}` is no address; accepted: unix:PATH or tcp:127.0.0.1:10809"
            )));
        };
        host(at, "tcp:127.0.0.1:10809", "read and overwrite the drive", remote).map(Address::Tcp)
    }

    /// Returns the URI of an NBD export at this address.
    pub(crate) fn nbd_uri(&self) -> String {
        match self {
            Address::Unix(path) => format!("nbd+unix:///?socket={}", path.display()),
            Address::Tcp(address) => format!("nbd://{address}"),
        }
    }
}

/// How a drive is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// The addresses at which NBD clients connect.
    pub nbd: Vec<Address>,
    /// The folder that is mounted with FUSE.
    pub fuse: Option<PathBuf>,
    /// The path of the control socket.
    pub control: Option<PathBuf>,
    /// The address at which the drive is seen.
    pub http: Option<SocketAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sockets_and_loopback_ports() {
        let parse =
            |text| Address::parse(text, false).map(|address| address.nbd_uri()).map_err(|e| e.to_string());
        assert_eq!(parse("unix:/tmp/a b").unwrap(), "nbd+unix:///?socket=/tmp/a b");
        assert_eq!(parse("tcp:127.0.0.1:10809").unwrap(), "nbd://127.0.0.1:10809");
        assert_eq!(parse("tcp:[::1]:1").unwrap(), "nbd://[::1]:1");
        for wrong in ["", "unix:", "tcp:", "tcp:127.0.0.1", "tcp:127.0.0.1:99999", "/tmp/socket"] {
            assert!(parse(wrong).unwrap_err().contains("accepted: "), "{wrong}");
        }
        assert!(parse("tcp:0.0.0.0:10809").unwrap_err().contains("--remote"));
        assert!(Address::parse("tcp:0.0.0.0:10809", true).is_ok());
    }
}
