"""Addresses that must not be connected to, in every spelling."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.fetch.ip_filter import refuses

REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "0.0.0.0": "unspecified",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.127.255.255": "carrier-grade NAT",
    "169.254.1.1": "link-local",
    "169.254.169.254": "cloud metadata",
    "168.63.129.16": "cloud metadata",
    "100.100.100.200": "cloud metadata",
    "192.0.2.7": "documentation",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "198.19.0.1": "benchmarking",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "[::1]": "loopback",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "fc00::1": "private",
    "fd00:ec2::254": "cloud metadata",
    "fec0::1": "private",
    "ff02::1": "multicast",
    "2001:db8::1": "documentation",
    "3fff:1::1": "documentation",
    "2001:10::1": "reserved",
    "100::1": "reserved",
    "4000::1": "reserved",
    "64:ff9b:1::1": "reserved",
    "::7f00:1": "reserved",
    "::ffff:0:7f00:1": "reserved",
    "::ffff:169.254.169.254": "IPv4-mapped cloud metadata",
    "::ffff:a00:1": "IPv4-mapped private",
    "2002:7f00:1::": "6to4 loopback",
    "2002:c0a8:101::1": "6to4 private",
    "64:ff9b::10.0.0.1": "NAT64 private",
    "2001:0:808:808:0:ffff:80ff:fffe": "Teredo loopback",
    "2001:0:a00:1:0:ffff:f7f7:f7f7": "Teredo private",
    "": "not an IP address",
    "localhost": "not an IP address",
    "2130706433": "not an IP address",
    "0177.0.0.1": "not an IP address",
    "127.1": "not an IP address",
    "127.0.0.1:80": "not an IP address",
    "127.0.0.\u0661": "not an IP address",
}
ALLOWED = [
    "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "223.255.255.255",
    "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
]  # fmt: skip


@pytest.mark.parametrize(("ip", "why"), REFUSED.items())
def test_refused_with_its_reason(ip: str, why: str) -> None:
    assert refuses(ip) == why


@pytest.mark.parametrize("ip", ALLOWED)
def test_public_addresses_are_allowed(ip: str) -> None:
    assert refuses(ip) is None


@given(st.integers(0, 2**32 - 1))
def test_nothing_that_python_calls_private_gets_through(number: int) -> None:
    address = IPv4Address(number)
    if (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
    ):
        assert refuses(str(address))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["::ffff:{}", "64:ff9b::{}"]))
def test_a_wrapped_address_is_judged_by_what_is_inside(number: int, form: str) -> None:
    inside = str(IPv4Address(number))
    assert bool(refuses(form.format(inside))) == bool(refuses(inside))


@given(st.integers(0, 2**128 - 1))
def test_no_ipv6_outside_the_global_part_gets_through_bare(number: int) -> None:
    address = IPv6Address(number)
    if not (number >> 125 == 1 or address.ipv4_mapped or number >> 32 == 0x64FF9B << 64):
        assert refuses(str(address))


@given(st.text(max_size=60))
def test_any_text_gives_an_answer(text: str) -> None:
    assert refuses(text) is None or refuses(text)
