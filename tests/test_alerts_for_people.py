"""Alerts as people write them: conditions on texts and numbers, tried on what is recorded, sent by mail."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recrawl
from recrawl.errors import UsageError
from recrawl.extras import MissingExtra
from recrawl.repository.alerts import rules
from recrawl.repository.alerts.conditions import all_hold, conditions, number_in
from recrawl.repository.alerts.wording import excerpt
from tests.world import Repo, Site, command


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that takes everything; `mails` are what it got."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, refuses: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Smtp)
        self.refuses = refuses
        self.mails: list[EmailMessage] = []
        self.receivers: list[str] = []
        self.target = f"smtp://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Smtp(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self._say("220 test")
        while line := self.rfile.readline().decode().strip():
            verb = line[:4].upper()
            if verb == "DATA":
                self._say("354 go on")
                body = b""
                while (more := self.rfile.readline()) != b".\r\n":
                    body += more.removeprefix(b".") if more.startswith(b"..") else more
                found = message_from_bytes(body, policy=policy.default)
                assert isinstance(found, EmailMessage)
                self.server.mails.append(found)
            if verb == "RCPT" and self.server.refuses:
                self._say(self.server.refuses)
                continue
            if verb == "RCPT":
                self.server.receivers.append(line.partition("<")[2].rstrip(">"))
            if verb == "QUIT":
                return self._say("221 bye")
            self._say("250 ok")
        return None

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with Mailbox() as server:
        yield server
        server.shutdown()


def shop(price: str, stock: str = "in stock", date: str = "today") -> bytes:
    return (
        f"<title>Kettle</title><main><h1>Kettle</h1><p class=price>{price}</p><p id=stock>{stock}</p>"
        f"<p>A kettle of steel that holds two litres of water and boils them in four minutes.</p>"
        f"<p class=date>{date}</p></main>"
    ).encode()


@pytest.fixture
def bought(repo: Repo) -> Iterator[tuple[Repo, Site]]:
    """A page whose price fell, rose and fell again, and that was sold out for a while."""
    with Site({"/": shop("120 €")}) as site:
        repo.crawl(site.url("/"))
        for now in (
            ("99 €",),
            ("99 €", "sold out"),
            ("1.105,50 €", "sold out"),
            ("95 €",),
            ("95 €", "in stock", "1 May"),
        ):
            site["/"] = shop(*now)
            repo.later(days=1)
            repo.cycle()
        yield repo, site


@pytest.mark.parametrize(
    ("written", "before", "after", "holds"),
    [
        ("contains sold out", "in stock", "Sold\n out", True),
        ("contains sold out", "sold out", "sold out!", False),
        ("contains no sold out", "sold out", "in stock", True),
        ("price below 100", "Price: 120 €", "Price: 99,90 €", True),
        ("price below 100", "Price: 99 €", "Price: 98 €", False),
        ("price below 100", "Weight 5, price 101", "Weight 5, price 100.5", False),
        ("price < 100 €", "price 100", "price 99", True),
        ("stock at least 1", "stock: 0", "stock: 3", True),
        ("above 3.9", "version 3.9", "version 3.11", False),
        ("rises", "7", "8", True),
        ("falls by 10 %", "100", "91", False),
        ("falls by 10 %", "100", "90", True),
        ("rises by 5", "100", "104", False),
        ("version changes", "Version 2.1", "Version 2.2", True),
        ("version changes", "Version 2.1 of May", "Version 2.1 of June", False),
        ("more than 50 % of the content", "a b c d", "a b c e", False),
        ("more than 50 % of the content", "a b c d", "e f g d", True),
        ("price below 100; contains in stock", "120 sold out", "price 90 in stock", True),
        ("price below 100; contains in stock", "120 sold out", "price 90 sold out", False),
        ("below 100", None, "99", True),
        ("falls", None, "99", False),
    ],
)
def test_conditions(written: str, before: str | None, after: str, holds: bool) -> None:
    assert all_hold(conditions(written), before, after) is holds


@pytest.mark.parametrize("written", ["cheap", "price below a fortune", "contains", "more than 5 % of it"])
def test_conditions_that_cannot_be_read(written: str) -> None:
    with pytest.raises(UsageError, match=r"condition"):
        conditions(written)


@given(st.integers(-(10**9), 10**9), st.sampled_from(["{:,}", "{}", "{:,}.00"]))
def test_numbers_are_read_as_they_are_written(value: int, form: str) -> None:
    assert number_in(f"costs {form.format(value)} now") == value


@given(st.text(max_size=60), st.integers(1, 50), st.integers(0, 60))
def test_excerpts_are_whole_words(text: str, most: int, start: int) -> None:
    plain = " ".join(text.split())
    cut = excerpt(plain, most, start)
    body = cut.removeprefix("… ").removesuffix(" …")
    assert len(body) <= most
    if " " in plain and " " in body:
        assert set(body.split()[1:-1]) <= set(plain.split())


def test_a_rule_is_tried_before_it_is_saved(bought: tuple[Repo, Site]) -> None:
    repo, site = bought
    said = repo.run("alert", "try", "--page", site.url("/"), "--selector", ".price", "--when", "below 100").out
    assert "it would have alerted 2 times" in said  # 120 → 99 and 1.105,50 → 95; not that the date changed
    assert "120 € → 99 €" in said
    tried = repo.json("alert", "try", "--when", "contains sold out")
    assert [(alert["outcome"], alert["after"]) for alert in tried["alerts"]] == [("changed", "sold out")]
    assert repo.json("alert", "try", "--when", "more than 60 % of the content")["alerts"] == []
    everything = len(repo.json("alert", "try")["alerts"])
    assert len(repo.json("alert", "try", "--ignore", ".date", "--outcomes", "changed")["alerts"]) == everything - 2
    assert repo.json("alert") == []  # nothing was saved


def test_a_tag_and_a_page_choose_pages(bought: tuple[Repo, Site]) -> None:
    repo, site = bought
    assert repo.json("alert", "try", "--tag", "wanted")["alerts"] == []
    repo.run("tag", "wanted", site.url("/"))
    assert len(repo.json("alert", "try", "--tag", "wanted")["alerts"]) == 6
    assert repo.run("alert", "try", "--page", site.url("/none"), code=None).code != 0


def test_a_watched_value_has_a_history(bought: tuple[Repo, Site]) -> None:
    repo, site = bought
    repo.run("alert", "add", "price", "feed", "--page", site.url("/"), "--selector", ".price")
    found = repo.json("alert", "values", "price")
    assert [row["number"] for row in found] == [120.0, 99.0, 1105.5, 95.0]


def test_a_mail_says_what_changed(bought: tuple[Repo, Site], mailbox: Mailbox) -> None:
    repo, site = bought
    repo.run("config", "private_targets", mailbox.target)
    repo.run("config", "dashboard", "https://watch.example.org")
    target = f"{mailbox.target}/?to=me@example.org&from=watch@example.org"
    repo.run("alert", "add", "price", target, "--selector", ".price", "--when", "falls")
    repo.run("alert", "test", "price")
    (tested,) = mailbox.mails
    assert "test" in tested.get_content()
    assert mailbox.receivers == ["me@example.org"]
    site["/"] = shop("80 €")
    repo.later(days=1)
    repo.cycle()
    repo.run("alert", "send")
    repo.run("alert", "send")  # nothing twice
    _, mail = mailbox.mails
    assert (mail["To"], mail["From"]) == ("me@example.org", "watch@example.org")
    assert mail["Subject"] == "Kettle: 95 € → 80 €"
    text = mail.get_content()
    assert site.url("/") in text
    assert "https://watch.example.org/pages/0/diff?new=" in text


def test_templates(bought: tuple[Repo, Site], mailbox: Mailbox) -> None:
    repo, site = bought
    repo.run("config", "private_targets", mailbox.target)
    target = f"{mailbox.target}/?to=me@example.org"
    more = ("--subject", "Now {after}", "--message", "{title} was {before}: {url}")
    repo.run("alert", "add", "price", target, "--selector", ".price", *more)
    site["/"] = shop("80 €")
    repo.later(days=1)
    repo.cycle()
    repo.run("alert", "send")
    (mail,) = mailbox.mails
    assert mail["Subject"] == "Now 80 €"
    assert mail.get_content().strip() == f"Kettle was 95 €: {site.url('/')}"
    assert "unknown field" in repo.run("alert", "add", "x", "feed", "--subject", "{price}", code=2).err


def test_a_mail_server_on_a_private_address_needs_permission(bought: tuple[Repo, Site], mailbox: Mailbox) -> None:
    repo, _ = bought
    repo.run("alert", "add", "all", f"{mailbox.target}/?to=me@example.org")
    assert "private_targets" in repo.run("alert", "test", "all", code=None).err
    assert mailbox.mails == []


@pytest.mark.parametrize(
    "target",
    [
        "smtp://mail.example.org/",
        "smtp://mail.example.org/?to=nobody",
        "smtp://me:secret@mail.example.org/?to=me@example.org",
        "smtp://mail.example.org/?to=me@example.org&cc=you@example.org",
        "smtp://mail.example.org:x/?to=me@example.org",
    ],
)
def test_mail_targets_that_cannot_work(repo: Repo, target: str) -> None:
    assert repo.run("alert", "add", "x", target, code=2).err


def test_a_missing_package_is_an_error_when_the_alert_is_saved(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*names: str) -> None:
        raise MissingExtra(names[0], "alerts")

    monkeypatch.setattr(rules, "require", missing)
    assert "apprise" in repo.run("alert", "add", "chat", "slack://a/b/c", code=2).err
    assert repo.json("alert") == []
    repo.run("alert", "add", "mail", "smtp://mail.example.org/?to=me@example.org")  # needs none


def test_quiet_hours_put_alerts_off(bought: tuple[Repo, Site], mailbox: Mailbox) -> None:
    repo, site = bought
    repo.run("config", "private_targets", mailbox.target)
    minute = int(repo.now() // 60) % 1440
    end = (minute + 120) % 1440
    quiet = f"{minute // 60:02}:{minute % 60:02}-{end // 60:02}:{end % 60:02}"
    repo.run("alert", "add", "night", f"{mailbox.target}/?to=me@example.org", "--quiet", quiet)
    site["/"] = shop("80 €")
    repo.later(seconds=60)
    repo.cycle()
    repo.run("alert", "send")
    with recrawl.open(repo.folder) as opened:
        (row,) = opened.storage.store.outbox.newest(5, 1 << 62)
    assert row["due"] // 60 % 1440 == end
    assert mailbox.mails == []
    repo.later(hours=3)
    repo.run("alert", "send")
    assert len(mailbox.mails) == 1


def test_watch_is_one_command(repo: Repo, tmp_path: Path) -> None:
    repo.run("config", "every", "1s")
    with Site({"/": shop("120 €")}) as site:
        said = repo.run("watch", site.url("/"), "http://127.0.0.1:1/", "--allow-private", "--count", 1)
    assert f"added {site.url('/')}" in said.out
    assert "Check the port" in said.err  # what to do about the server that is not there
    assert command("watch", "example.org", "--every", "5s", cwd=tmp_path).code == 2
    assert (tmp_path / "watched" / "recrawl.toml").exists()
