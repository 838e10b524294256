"""IP addresses that the crawler must not connect to, whatever a link, a redirect or a name server says.

A crawler that follows any link is a way into its own network: a page may link to a router, a database port or a cloud
metadata service, and a public name may resolve to a private address. The client checks the address it is about to
connect to, after name resolution.

The list is our own, because the results of `ipaddress.is_global` differ between Python versions.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
)
"""Metadata services of clouds, which serve credentials. The second is a public address, used only inside Azure."""

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
    """Why connections to this IP address are refused; None if they are allowed.

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
    embedded = _embedded(address)
    if embedded:
        form, inner = embedded
        why = next((why for why in map(_refuses_4, inner) if why), None)
        return f"{form} {why}" if why else None
    found = next((why for network, why in _NETWORKS_6 if address in network), None)
    # Everything outside 2000::/3 is reserved, including IPv4-compatible and IPv4-translated addresses.
    return found or (None if address in _GLOBAL_6 else "reserved")


def _embedded(address: IPv6Address) -> tuple[str, tuple[IPv4Address, ...]] | None:
    """The IPv4 addresses embedded in an IPv6 address, and the name of the embedding."""
    if address.ipv4_mapped:
        return "IPv4-mapped", (address.ipv4_mapped,)
    if address.sixtofour:
        return "6to4", (address.sixtofour,)
    if address.teredo:
        return "Teredo", address.teredo
    if address in _NAT64:
        return "NAT64", (IPv4Address(int(address) & 0xFFFFFFFF),)
    return None
