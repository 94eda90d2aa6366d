//! How the servers of an agent share the room for the definitions of their tools. No I/O.

use crate::probe::FoundServer;

/// How large the definitions of all tools of an agent may be, in bytes.
const MOST_DEFINED: usize = 512 << 10;

/// How many tools without room are named.
const MOST_NAMED: usize = 5;

/// Which tools of each server fit, given by their sizes in bytes. No server takes the share of another.
pub(crate) fn fitting(servers: &[Vec<usize>]) -> Vec<Vec<bool>> {
    let needs: Vec<usize> = servers.iter().map(|sizes| sizes.iter().sum()).collect();
    let fit = |(sizes, mut left): (&Vec<usize>, usize)| {
        let fits = |size: &usize| {
            let rest = left.checked_sub(*size);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        sizes.iter().map(fits).collect()
    };
    servers.iter().zip(shares(MOST_DEFINED, &needs)).map(fit).collect()
}

/// How much of the room each one gets: what it needs, if that is no more than an equal share of what others leave; else such a share.
fn shares(room: usize, needs: &[usize]) -> Vec<usize> {
    let mut smallest_first: Vec<usize> = (0..needs.len()).collect();
    smallest_first.sort_by_key(|server| needs[*server]);
    let (mut left, mut shares) = (room, vec![0; needs.len()]);
    for (served, server) in smallest_first.into_iter().enumerate() {
        shares[server] = needs[server].min(left / (needs.len() - served));
        left -= shares[server];
    }
    shares
}

/// Why these tools of a server are not offered. `None`: there are none.
pub(crate) fn no_room(names: &[&str]) -> Option<String> {
    let (count, kib) = (names.len(), MOST_DEFINED >> 10);
    let more = if count > MOST_NAMED { ", …" } else { "" };
    let beginning = names.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
    (count > 0).then(|| format!("{count} tools ({beginning}{more}) have no room: the definitions of all tools of an agent have at most {kib} KiB"))
}

/// Takes out the tools that have no room beside those of the other servers of an agent, and says so.
pub fn share(servers: &mut [&mut FoundServer]) {
    let sizes: Vec<Vec<usize>> =
        servers.iter().map(|server| server.tools.iter().map(|tool| tool.size).collect()).collect();
    for (server, fits) in servers.iter_mut().zip(fitting(&sizes)) {
        let (fitting, rest): (Vec<_>, Vec<_>) = server.tools.drain(..).zip(fits).partition(|(_, fits)| *fits);
        server.tools = fitting.into_iter().map(|(tool, _)| tool).collect();
        let names: Vec<&str> = rest.iter().map(|(tool, _)| tool.name.as_str()).collect();
        server.left_out.extend(no_room(&names));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_server_takes_the_share_of_another() {
        let large = vec![MOST_DEFINED / 4; 10];
        let small = vec![1000; 3];

        let fits = fitting(&[large.clone(), small, large]);

        let counts: Vec<_> = fits.iter().map(|fits| fits.iter().filter(|fits| **fits).count()).collect();
        assert_eq!(counts, [1, 3, 1]);
    }

    #[test]
    fn what_others_do_not_need_is_used() {
        assert_eq!(shares(100, &[90, 10, 80]), [45, 10, 45]);
        assert_eq!(shares(100, &[20, 30]), [20, 30]);
        assert!(shares(100, &[]).is_empty());
    }

    #[test]
    fn tools_without_room_are_named() {
        assert_eq!(no_room(&[]), None);
        let why = no_room(&["a", "b", "c", "d", "e", "f"]).expect("there are some");
        assert!(why.starts_with("6 tools (a, b, c, d, e, …) have no room: "), "{why}");
    }
}
