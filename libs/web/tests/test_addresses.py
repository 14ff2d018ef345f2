"""Which addresses a name may lead to."""

from __future__ import annotations

import pytest

from popagent_web.addresses import gives_credentials, may_be_own, may_be_reached, origin_of, spelled


@pytest.mark.parametrize(
    ("address", "host", "may"),
    [
        ("93.184.216.34", "guard.example.com", True),
        ("2606:2800:220:1:248:1893:25c8:1946", "guard.example.com", True),
        ("127.0.0.1", "guard.example.com", False),
        ("10.0.0.5", "guard.example.com", False),
        ("192.168.1.1", "guard.example.com", False),
        ("169.254.169.254", "guard.example.com", False),
        ("::1", "guard.example.com", False),
        ("::ffff:127.0.0.1", "guard.example.com", False),
        ("fe80::1%eth0", "guard.example.com", False),
        ("fd00::1", "guard.example.com", False),
        ("0.0.0.0", "guard.example.com", False),
        ("224.0.0.1", "guard.example.com", False),
        ("64:ff9b::7f00:1", "guard.example.com", False),
        ("64:ff9b::a9fe:a9fe", "guard.example.com", False),
        ("64:ff9b::5db8:d822", "guard.example.com", True),
        ("64:ff9b:1::7f00:1", "guard.example.com", False),
        ("2002:7f00:1::", "guard.example.com", False),
        ("2002:a00:5::1", "guard.example.com", False),
        ("2001:0:7f00:1::", "guard.example.com", False),
        ("::127.0.0.1", "guard.example.com", False),
        ("::ffff:0:127.0.0.1", "guard.example.com", False),
        ("::", "guard.example.com", False),
        ("fec0::1", "guard.example.com", False),
        ("ff02::1", "guard.example.com", False),
        ("100.64.0.1", "guard.example.com", False),
        ("192.88.99.1", "guard.example.com", False),
        ("168.63.129.16", "guard.example.com", False),
        ("240.0.0.1", "guard.example.com", False),
        ("127.0.0.1", "2130706433", False),
        ("127.0.0.1", "localhost", True),
        ("93.184.216.34", "localhost", False),
        ("10.0.0.5", "10.0.0.5", True),
        ("10.0.0.6", "10.0.0.5", False),
        ("::1", "0:0:0:0:0:0:0:1", True),
    ],
)
def test_a_name_leads_to_the_public_network_only(address: str, host: str, *, may: bool) -> None:
    assert may_be_reached(address, host) is may


@pytest.mark.parametrize(
    ("address", "host", "may"),
    [
        ("10.0.0.5", "searxng", True),
        ("192.168.1.9", "search.lan", True),
        ("127.0.0.1", "search.lan", True),
        ("93.184.216.34", "search.example.com", True),
        ("fd00::1", "searxng", True),
        ("169.254.169.254", "searxng", False),
        ("::ffff:169.254.169.254", "searxng", False),
        ("64:ff9b::a9fe:a9fe", "searxng", False),
        ("2002:a9fe:a9fe::1", "searxng", False),
        ("::169.254.169.254", "searxng", False),
        ("fd00:ec2::254", "searxng", False),
        ("100.100.100.200", "searxng", False),
        ("168.63.129.16", "searxng", False),
        ("fe80::1%eth0", "searxng", False),
        ("0.0.0.0", "searxng", False),
        ("224.0.0.1", "searxng", False),
        ("127.0.0.1", "localhost", True),
        ("10.0.0.5", "localhost", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("10.0.0.6", "127.0.0.1", False),
    ],
)
def test_a_server_of_the_operator_may_be_near_and_never_where_clouds_give_credentials(
    address: str, host: str, *, may: bool
) -> None:
    assert may_be_own(address, host) is may


@pytest.mark.parametrize(
    "url", ["http://a:99999/", "http://a:-1/", "http://a:x/", "http://[::1/", "http://[127.0.0.1]/"]
)
def test_what_is_no_url_is_told_in_our_own_words(url: str) -> None:
    with pytest.raises(ValueError, match="must be an http or https URL with a host"):
        origin_of(url)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        *(("127.0.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("0x7f.1", "127.0.0.1"), ("0177.1", "127.0.0.1")),
        *(("2852039166", "169.254.169.254"), ("0xa9fea9fe", "169.254.169.254"), ("169.16689662", "169.254.169.254")),
        *(("::ffff:a9fe:a9fe", "169.254.169.254"), ("::1", "::1"), ("0", "0.0.0.0")),
        *(("example.org", None), ("fa", None), ("a.b.c.d", None), ("1.2.3.4.5", None), ("", None)),
    ],
)
def test_an_address_is_known_by_every_spelling(host: str, address: str | None) -> None:
    found = spelled(host)

    assert (None if found is None else str(found)) == address


@pytest.mark.parametrize(
    ("address", "gives"),
    [
        *(("169.254.169.254", True), ("::ffff:169.254.169.254", True), ("64:ff9b::a9fe:a9fe", True), ("fe80::1", True)),
        *(("fd00:ec2::254", True), ("100.100.100.200", True), ("168.63.129.16", True)),
        *(("127.0.0.1", False), ("10.0.0.5", False), ("0.0.0.0", False), ("93.184.216.34", False), ("fd00::1", False)),
    ],
)
def test_it_is_known_where_clouds_give_credentials(address: str, *, gives: bool) -> None:
    assert gives_credentials(address) is gives
