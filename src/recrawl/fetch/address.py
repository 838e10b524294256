"""Which addresses the crawler must not connect to, whatever a link, a redirect or a name server says.

A crawler that follows any link is a way into the network it runs in: a page may link to a router, to a
database's port or to the service that hands out a cloud machine's keys, and a public name may resolve to a
private address. The client asks here with the address it is about to connect to, after the name was resolved.

The list is our own and not `ipaddress.is_global`, whose answers differ between Python versions.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
)
"""Where clouds tell a machine its secrets. The second is public in form, but answered inside Azure only."""

_NETWORKS_4 = tuple(
    (ip_network(net), why)
    for net, why in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_NETWORKS_6 = tuple(
    (ip_network(net), why)
    for net, why in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("2001::/23", "reserved"),
    )
)
_GLOBAL_6 = ip_network("2000::/3")
_NAT64 = ip_network("64:ff9b::/96")


@lru_cache(maxsize=4096)
def refuses(ip: str) -> str | None:
    """Why this address must not be connected to; None when it may be.

    >>> refuses("10.1.2.3"), refuses("::ffff:127.0.0.1"), refuses("2606:4700::1111")
    ('private', 'IPv4-mapped loopback', None)
    >>> refuses("0x7f.1")
    'not an IP address'
    """
    try:
        address = ip_address(ip.strip("[]"))
    except ValueError:
        return "not an IP address"
    return _refuses_4(address) if isinstance(address, IPv4Address) else _refuses_6(address)


def _refuses_4(address: IPv4Address) -> str | None:
    if address in _METADATA:
        return "cloud metadata"
    return next((why for network, why in _NETWORKS_4 if address in network), None)


def _refuses_6(address: IPv6Address) -> str | None:
    if address.scope_id is not None:
        return "link-local"
    if address in _METADATA:
        return "cloud metadata"
    wrapped = _wrapped(address)
    if wrapped:
        form, inner = wrapped
        why = next((why for why in map(_refuses_4, inner) if why), None)
        return f"{form} {why}" if why else None
    found = next((why for network, why in _NETWORKS_6 if address in network), None)
    # All outside the part that is given out is reserved, IPv4-compatible and -translated forms included.
    return found or (None if address in _GLOBAL_6 else "reserved")


def _wrapped(address: IPv6Address) -> tuple[str, tuple[IPv4Address, ...]] | None:
    """The IPv4 addresses that an IPv6 one leads to, and the name of the form."""
    if address.ipv4_mapped:
        return "IPv4-mapped", (address.ipv4_mapped,)
    if address.sixtofour:
        return "6to4", (address.sixtofour,)
    if address.teredo:
        return "Teredo", address.teredo
    if address in _NAT64:
        return "NAT64", (IPv4Address(int(address) & 0xFFFFFFFF),)
    return None
