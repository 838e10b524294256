"""Histories from elsewhere: git repositories, WARC files and capture listings, through the library and by command."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import BadArchive, UnknownName, UsageError
from recrawl.lab.formats import capture_listings, git_history, warc_files
from recrawl.lab.formats.source_kinds import CARRIES, kind_of
from recrawl.lab.formats.version_rows import Taken, Window
from recrawl.lab.histories.history import ABSENT, History
from tests.complaints import complaint
from tests.git_work import BASE, DAY, HOUR, START, Rows, Work, rows_of, states
from tests.world import Reply, Repo, command, page

# -- git -------------------------------------------------------------------------------------------------


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")


def test_git_commits_become_versions(work: Work) -> None:
    first = work.commit(
        {"index.html": b"one", "sub/index.html": b"s", "a.htm": b"a", "style.css": b"x", "README": b"x"}
    )
    second = work.commit({"index.html": b"two", "style.css": b"y"})
    third = work.commit({"a.htm": None, "sub/b.HTML": b"b"})
    assert work.rows() == [
        (BASE, first, b"one"),
        (BASE, second, b"two"),
        (BASE + "a.htm", first, b"a"),
        (BASE + "a.htm", third, None),
        (BASE + "sub/", first, b"s"),
        (BASE + "sub/b.HTML", third, b"b"),
    ]
    assert work.taken == Taken(pages=4, rows=6, removals=1, start=first, end=third)


def test_git_rename_is_a_removal_and_a_birth(work: Work) -> None:
    body = b"<p>the same words in both places" * 20
    born = work.commit({"old.html": body})
    moved = work.commit({"old.html": None, "new.html": body})
    assert work.rows() == [
        (BASE + "new.html", moved, body),
        (BASE + "old.html", born, body),
        (BASE + "old.html", moved, None),
    ]


def test_git_page_comes_back(work: Work) -> None:
    for body in (b"one", None, b"one", b"two", b"one"):
        work.commit({"a.html": body})
    assert states(work.rows(), BASE + "a.html") == [b"one", None, b"one", b"two", b"one"]


def test_git_merge_counts_when_it_is_merged(work: Work) -> None:
    """What happened on a side branch was not to be seen before; and a change of both sides is one."""
    work.commit({"a.html": b"a1", "b.html": b"b1"})
    work.git("checkout", "-q", "-b", "side")
    work.commit({"b.html": b"b2"})
    work.commit({"b.html": b"b3", "c.html": b"c"})
    work.git("checkout", "-q", "main")
    main = work.commit({"a.html": b"a2"})
    work.time += HOUR
    work.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    rows = work.rows()
    assert [(url[len(BASE) :], time - main, body) for url, time, body in rows if time >= main] == [
        ("a.html", 0, b"a2"),
        ("b.html", HOUR, b"b3"),
        ("c.html", HOUR, b"c"),
    ]
    assert len(rows) == 5
    assert states(work.rows(branch="side"), BASE + "b.html") == [b"b1", b"b2", b"b3"]


@pytest.mark.parametrize(
    "setting",
    [
        "log.showRoot=false",
        "log.diffMerges=off",
        "log.showSignature=true",
        "log.decorate=full",
        "diff.renames=copies",
        "diff.relative=true",
        "core.quotePath=true",
        "color.ui=always",
    ],
)
def test_git_settings_change_nothing(work: Work, setting: str) -> None:
    work.commit({"a.html": b"words " * 50})
    work.git("checkout", "-q", "-b", "side")
    work.commit({"ü.html": b"words " * 50})
    work.git("checkout", "-q", "main")
    work.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    before = work.rows()
    work.git("config", *setting.split("="))
    assert work.rows() == before
    assert len(before) == 2


def test_git_names_of_all_kinds(work: Work) -> None:
    plain = ["a b.html", "ü.html", "new\nline.html", "tab\t.html", "-dash.html", ":colon.html", "per%20cent.html"]
    marks = ["q?.html", 'quo"te.html', "#hash.html", "back\\slash.html", "[x].html", "dir with space/index.html"]
    names = plain + marks
    work.commit({name: name.encode() for name in names})
    rows = work.rows()
    assert len(rows) == len(names)
    found = {body: url.removeprefix(BASE) for url, _, body in rows}
    assert found[b"a b.html"] == "a%20b.html"
    assert found["ü.html".encode()] == "%C3%BC.html"
    assert found[b"new\nline.html"] == "new%0Aline.html"
    assert found[b"per%20cent.html"] == "per%2520cent.html"
    assert found[b"q?.html"] == "q%3F.html"
    assert found[b"[x].html"] == "%5Bx%5D.html"
    assert found[b"dir with space/index.html"] == "dir%20with%20space/"


def test_git_file_name_that_is_not_utf_8(work: Work) -> None:
    """Names are bytes to git."""
    blob = work.git("hash-object", "-w", "--stdin", text=b"body").strip()
    work.git("update-index", "-z", "--index-info", text=b"100644 " + blob + b"\t\xff\xfe.html\0")
    work.git("commit", "-q", "-m", "odd")
    assert work.rows() == [(BASE + "%FF%FE.html", START, b"body")]


def test_git_names_with_the_same_url(work: Work) -> None:
    """A session id is no part of an address, so these two would be one page."""
    work.commit({"a.html;sid=1/x.html": b"one", "a.html;sid=2/x.html": b"two"})
    assert len(work.rows()) == 1
    assert list(work.taken.remarks.values()) == [1]


def test_git_clock_that_runs_backwards(work: Work) -> None:
    first = work.commit({"a.html": b"1"})
    work.commit({"a.html": b"2"}, after=-DAY)
    work.commit({"a.html": b"3"}, after=0)
    last = work.commit({"a.html": b"4"}, after=2 * DAY)
    assert [(time - first, body) for _, time, body in work.rows()] == [
        (0, b"1"),
        (1, b"2"),
        (2, b"3"),
        (last - first, b"4"),
    ]
    assert work.taken.remarks == {"commits moved after the one before them": 2}


def test_git_links_and_submodules_are_not_pages(work: Work, tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("not in the repository")
    first = work.commit({"a.html": b"a", "b.html": b"b"})
    (work.folder / "b.html").unlink()
    (work.folder / "b.html").symlink_to(tmp_path / "secret.html")
    second = work.commit({})
    commit = work.git("rev-parse", "HEAD").strip().decode()
    work.git("update-index", "--add", "--cacheinfo", f"160000,{commit},module.html")
    work.time += HOUR
    work.git("commit", "-q", "-m", "submodule")
    assert work.rows() == [
        (BASE + "a.html", first, b"a"),
        (BASE + "b.html", first, b"b"),
        (BASE + "b.html", second, None),
    ]
    assert list(work.taken.remarks.values()) == [2]


def test_git_link_from_the_start_with_long_names(tmp_path: Path) -> None:
    work = Work(tmp_path / "work", "--object-format=sha256")
    (work.folder / "a.html").symlink_to("b.html")
    work.commit({"b.html": b"b"})
    work.commit({"b.html": b"c"})
    assert [body for _, _, body in work.rows()] == [b"b", b"c"]


def test_git_large_files_are_left_out(work: Work) -> None:
    for size in (10, 100, 20, 100_000, 5):
        work.commit({"a.html": b"x" * size, "b.html": b"y" * size})
    rows = work.rows(max_bytes=50)
    assert [len(body or b"") for body in states(rows, BASE + "a.html")] == [10, 20, 5]
    assert states(rows, BASE + "b.html")[-1] == b"yyyyy"
    assert list(work.taken.remarks.values()) == [4]


def test_git_more_than_fits_in_a_pipe(work: Work) -> None:
    """Neither side may wait for the other."""
    files = {f"{number}.html": os.urandom(3000) * 30 for number in range(70)}
    work.commit(dict(files))
    assert {url.removeprefix(BASE): body for url, _, body in work.rows()} == files


def test_git_bare_clone_worktree_and_shallow(work: Work, tmp_path: Path) -> None:
    for number in range(3):
        work.commit({"a.html": b"%d" % number})
    wanted = work.rows()
    work.git("clone", "-q", "--bare", str(work.folder), str(tmp_path / "bare.git"))
    work.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    work.git("clone", "-q", "--depth", "1", f"file://{work.folder}", str(tmp_path / "shallow"))
    out = tmp_path / "other.parquet"
    for name in ("bare.git", "tree"):
        assert kind_of(tmp_path / name) == "git"
        git_history.convert(tmp_path / name, out, base_url=BASE)
        assert rows_of(out) == wanted
    git_history.convert(tmp_path / "shallow", out, base_url=BASE)
    assert rows_of(out) == wanted[-1:]


def test_git_root_and_base(work: Work) -> None:
    first = work.commit({"docs/index.html": b"d", "docs/x/y.html": b"y", "docs2/z.html": b"z", "a.html": b"a"})
    base = "https://example.org/manual"
    assert work.rows(root="docs", base_url=base) == [(f"{base}/", first, b"d"), (f"{base}/x/y.html", first, b"y")]
    assert work.rows(root="./docs//x/", base_url=base) == [(f"{base}/y.html", first, b"y")]


def test_git_root_with_marks_in_it(work: Work) -> None:
    first = work.commit({"[d]*/a.html": b"a", "d/b.html": b"b", ":(top)/c.html": b"c"})
    assert work.rows(root="[d]*") == [(BASE + "a.html", first, b"a")]
    assert work.rows(root=":(top)") == [(BASE + "c.html", first, b"c")]


def test_git_window(work: Work) -> None:
    first = work.commit({"a.html": b"1", "gone.html": b"g", "still.html": b"s"})
    work.commit({"a.html": b"2", "gone.html": None})
    since = work.time + 60
    third = work.commit({"a.html": b"3", "new.html": b"n"})
    work.commit({"a.html": b"4"})
    rows = work.rows(window=Window(since=since, until=third))
    assert rows == [
        (BASE + "a.html", since, b"2"),
        (BASE + "a.html", third, b"3"),
        (BASE + "new.html", third, b"n"),
        (BASE + "still.html", since, b"s"),
    ]
    assert [url for url, time, _ in work.rows(window=Window(limit=2)) if time == first] == [
        BASE + "a.html",
        BASE + "gone.html",
    ]
    with pytest.raises(BadArchive, match="in this period"):
        work.convert(window=Window(until=first - 1))


def test_git_branches(work: Work) -> None:
    work.commit({"a.html": b"main"})
    work.git("checkout", "-q", "-b", "feature/x")
    work.commit({"a.html": b"feature"})
    work.git("checkout", "-q", "main")
    work.git("tag", "feature/x", "main")  # git calls that ambiguous; a branch was asked for
    assert states(work.rows(branch="feature/x"), BASE + "a.html") == [b"main", b"feature"]
    assert states(work.rows(branch="main"), BASE + "a.html") == [b"main"]
    assert states(work.rows(branch=work.git("rev-parse", "HEAD").decode().strip()), BASE + "a.html") == [b"main"]
    with pytest.raises(UnknownName, match="did you mean 'main'"):
        work.convert(branch="mian")
    for name in ("--output=/tmp/x", "-x", "--", "main..feature/x", "a b"):
        with pytest.raises(UnknownName):
            work.convert(branch=name)


def test_git_errors(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadArchive, match="no commits"):
        work.convert()
    with pytest.raises(BadArchive, match="no commits"):
        work.convert(branch="main")
    work.commit({"README": b"nothing here"})
    with pytest.raises(BadArchive, match=r"no commit on main of .* has an \.html"):
        work.convert(branch="main")
    for url in ("", "ftp://example.org/", "https://example.org/?a=1", "no address"):
        with pytest.raises(UsageError, match="base-url"):
            work.convert(base_url=url)
    for root in ("/etc", "..", "a/../../b"):
        with pytest.raises(UsageError, match="--root"):
            work.convert(root=root)
    inside = work.folder / "inside"
    inside.mkdir()
    with pytest.raises(BadArchive, match="not a git repository"):
        git_history.convert(inside, tmp_path / "x.parquet", base_url=BASE)
    assert not list(tmp_path.glob("*.parquet*"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="git is not installed"):
        work.convert()


def test_git_ignores_its_environment_variables(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from a hook, git's own variables name another repository."""
    other = Work(tmp_path / "other")
    other.commit({"other.html": b"o"})
    work.commit({"a.html": b"a"})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    assert [url for url, _, _ in work.rows()] == [BASE + "a.html"]


def test_git_fetches_nothing(work: Work, tmp_path: Path) -> None:
    """A partial clone would fetch what it lacks, by any program that its settings name."""
    work.commit({"a.html": b"a", "b.html": b"b"})
    work.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    work.git("clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{work.folder}", str(clone))
    proof = tmp_path / "proof"
    for name, value in (("remote.origin.url", f"ext::touch {proof}"), ("protocol.ext.allow", "always")):
        work.git("-C", str(clone), "config", name, value)
    with pytest.raises(BadArchive, match="partial clone"):
        git_history.convert(clone, tmp_path / "x.parquet", base_url=BASE)
    assert not proof.exists()


def test_git_damaged(work: Work) -> None:
    work.commit({"a.html": b"a"})
    shutil.rmtree(work.folder / ".git" / "objects")
    (work.folder / ".git" / "objects").mkdir()
    with pytest.raises(BadArchive):
        work.convert()


def test_git_progress(work: Work) -> None:
    work.commit({"a.html": b"a", "b.html": b"b"})
    told: list[tuple[str, int, int | None]] = []
    work.convert(progress=lambda *news: told.append(news))
    assert told == [("changes", 1, None), ("changes", 2, None), ("versions", 2, 2)]


names = st.sampled_from(["index.html", "a.html", "d/index.html", "d/b.htm", "d/e/c.html", "style.css"])
bodies = st.one_of(st.none(), st.sampled_from([b"", b"one", b"two", b"three\n"]))
edits = st.lists(st.tuples(st.dictionaries(names, bodies, max_size=4), st.integers(-2, 3)), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(edits)
def test_git_any_sequence_of_edits(history: list[tuple[dict[str, bytes | None], int]]) -> None:
    """The rows are the changes of each page, at times that keep the order of the commits."""
    stream, clock, shown = [], START, 0
    tree: dict[str, bytes] = {}
    wanted: Rows = []
    for files, step in history:
        clock += step
        if any(tree.get(name) != body and not name.endswith(".css") for name, body in files.items()):
            shown = max(clock, shown + 1)  # only commits that change pages have a say in the clock
        stream.append(b"commit refs/heads/main\ncommitter a <a@example.org> %d +0000\ndata 0\n" % clock)
        for name, body in files.items():
            url = BASE + name.removesuffix("index.html")
            if body is None:
                stream.append(b"D %s\n" % name.encode() if name in tree else b"")
            else:
                stream.append(b"M 644 inline %s\ndata %d\n%s\n" % (name.encode(), len(body), body))
            if tree.get(name) != body and not name.endswith(".css"):
                wanted.append((url, shown, body))
            tree.pop(name, None) if body is None else tree.update({name: body})
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder) / "bare", "--bare")
        work.git("fast-import", "--quiet", text=b"".join(stream))
        if not wanted:
            with pytest.raises(BadArchive):
                work.convert()
            return
        assert work.rows() == sorted(wanted, key=lambda row: row[:2])


# -- WARC ------------------------------------------------------------------------------------------------


class Warc:
    """A WARC file in the making, written byte by byte as the standard says."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._records: list[bytes] = []

    def add(
        self,
        path: str,
        at: int,
        body: bytes,
        status: int = 200,
        kind: str = "text/html",
        head: Iterable[tuple[str, str]] = (),
    ) -> str:
        """A response; its digest."""
        digest = "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
        headers = [*([("Content-Type", kind)] if kind else []), *head]
        self._record("response", path, at, digest, http_head(status, headers) + body)
        return digest

    def again(self, path: str, at: int, digest: str, status: int = 200) -> None:
        """A revisit."""
        self._record("revisit", path, at, digest, http_head(status, []))

    def _record(self, kind: str, path: str, at: int, digest: str, block: bytes) -> None:
        fields = {
            "WARC-Type": kind,
            "WARC-Record-ID": f"<urn:uuid:00000000-0000-4000-8000-{len(self._records):012d}>",
            "WARC-Target-URI": path if ":" in path else BASE + path,
            "WARC-Date": stamp(at),
            "WARC-Payload-Digest": digest,
            "Content-Type": "application/http; msgtype=response",
            "Content-Length": str(len(block)),
        }
        lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self._records.append("\r\n".join(lines).encode() + block + b"\r\n\r\n")

    def close(self) -> Path:
        packed = self.file.name.endswith("gz")
        self.file.write_bytes(b"".join(gzip.compress(record) if packed else record for record in self._records))
        return self.file


def http_head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {status} So", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode()


def stamp(at: int) -> str:
    return str(np.datetime64(at, "s")) + "Z"


def warc_rows(*files: Path, **options: Any) -> tuple[Rows, Taken]:
    out = files[0].parent / "out.parquet"
    taken = warc_files.convert(files, out, **options)
    return [(url.removeprefix(BASE), time - START, body) for url, time, body in rows_of(out)], taken


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_warc_records_become_versions(tmp_path: Path, name: str) -> None:
    warc = Warc(tmp_path / name)
    warc.add("b", START + 5, b"b1")
    warc.add("a", START, b"a1")
    warc.add("a", START + 10, b"a1")  # the same again
    warc.add("a", START + 20, b"a2", kind="application/xhtml+xml; charset=utf-8")
    warc.add("a", START + 25, b"moved", status=301)
    warc.add("a", START + 26, b"broken", status=500)
    warc.add("b", START + 30, b"no", status=404)
    warc.add("b", START + 31, b"no", status=410)
    warc.add("b", START + 40, b"b2")
    warc.add("never", START + 1, b"no", status=404)
    warc.add("picture", START + 1, b"\x89PNG", kind="image/png")
    warc.add("dns:example.org", START + 1, b"x", kind="text/dns")
    rows, taken = warc_rows(warc.close())
    assert rows == [
        ("a", 0, b"a1"),
        ("a", 20, b"a2"),
        ("b", 5, b"b1"),
        ("b", 30, None),
        ("b", 40, b"b2"),
    ]
    assert taken == Taken(pages=2, rows=5, removals=1, start=START, end=START + 40)


def test_warc_revisits(tmp_path: Path) -> None:
    """The same as the last time is no version; the same as the time before that is one."""
    late, early = Warc(tmp_path / "1.warc.gz"), Warc(tmp_path / "2.warc.gz")
    one = early.add("a", START, b"one")
    early.again("a", START + 5, one)
    two = early.add("a", START + 10, b"two")
    late.again("a", START + 20, two)
    late.again("a", START + 30, one)  # back to what it was, and told before that in the order of files
    late.again("a", START + 40, "sha1:" + "A" * 32)
    late.again("a", START + 50, "sha1:" + "B" * 32, status=404)
    late.again("a", START + 60, one, status=302)
    late.again("a", START + 70, two)
    late.again("picture", START + 40, "sha1:" + "C" * 32)
    rows, taken = warc_rows(late.close(), early.close())
    assert rows == [("a", 0, b"one"), ("a", 10, b"two"), ("a", 30, b"one"), ("a", 50, None), ("a", 70, b"two")]
    left = taken.records["revisit"].left_out
    assert left == {"what it repeats is in none of the files": 2, "redirects": 1}


def test_warc_encodings(tmp_path: Path) -> None:
    """Bodies are unpacked; those that were unpacked before, with the old headers kept, are taken as they are."""
    warc, body = Warc(tmp_path / "a.warc.gz"), b"<p>words"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    warc.add("chunked", START, chunked, head=[("Transfer-Encoding", "chunked")])
    warc.add("gzip", START, gzip.compress(body), head=[("Content-Encoding", "gzip")])
    warc.add("lie", START, body, head=[("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")])
    warc.add("rubbish", START, b"\x00\x01\x02\x03", head=[("Content-Encoding", "br")])
    warc.add("untold", START, body, kind="")
    rows, taken = warc_rows(warc.close())
    assert rows == [(name, 0, body) for name in ("chunked", "gzip", "lie", "untold")]
    assert taken.records["response"].left_out == {"cannot be decoded": 1}


def test_warc_large_bodies_are_left_out(tmp_path: Path) -> None:
    warc = Warc(tmp_path / "a.warc.gz")
    warc.add("small", START, b"x" * 100)
    warc.add("large", START, b"x" * 100_000)
    warc.add("bomb", START, gzip.compress(b"x" * 1_000_000), head=[("Content-Encoding", "gzip")])
    rows, taken = warc_rows(warc.close(), max_bytes=5000)
    assert [row[0] for row in rows] == ["small"]
    assert taken.records["response"].left_out == {"too large": 2}


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_warc_cut_off(tmp_path: Path, name: str) -> None:
    warc = Warc(tmp_path / name)
    for number in range(3):
        warc.add(f"{number}", START, os.urandom(3000))
    whole = warc.close().read_bytes()
    (tmp_path / name).write_bytes(whole[:-500])
    rows, taken = warc_rows(tmp_path / name)
    assert [row[0] for row in rows] == ["0", "1"]
    assert taken.records["response"].left_out == {"cut off": 1}
    (tmp_path / name).write_bytes(whole + b"rubbish at the end\r\n" * 5)
    rows, taken = warc_rows(tmp_path / name)
    assert len(rows) == 3


@pytest.mark.parametrize("left", [1, 12, 60])
def test_warc_cut_off_within_the_header_of_a_record(tmp_path: Path, left: int) -> None:
    warc = Warc(tmp_path / "a.warc.gz")
    for number in range(2):
        warc.add(f"{number}", START, random.Random(number).randbytes(3000))
    whole = warc.close().read_bytes()
    assert warc_rows(tmp_path / "a.warc.gz")[1].remarks == {}
    last = whole.rindex(b"\x1f\x8b\x08")
    (tmp_path / "a.warc.gz").write_bytes(whole[: last + left])
    rows, taken = warc_rows(tmp_path / "a.warc.gz")
    assert [row[0] for row in rows] == ["0"]
    assert taken.remarks == {"files whose end is missing": 1}


def test_warc_packed_as_one(tmp_path: Path) -> None:
    """Some tools compress the whole file at once."""
    warc = Warc(tmp_path / "a.warc")
    warc.add("a", START, b"one")
    warc.add("b", START, b"two")
    (tmp_path / "b.warc.gz").write_bytes(gzip.compress(warc.close().read_bytes()))
    assert len(warc_rows(tmp_path / "b.warc.gz")[0]) == 2


def test_warc_same_second_and_same_file_twice(tmp_path: Path) -> None:
    warc = Warc(tmp_path / "a.warc")
    warc.add("a", START, b"one")
    warc.add("a", START, b"two")
    file = warc.close()
    assert warc_rows(file, file)[0] == [("a", 0, b"two")]


def test_warc_window(tmp_path: Path) -> None:
    warc = Warc(tmp_path / "a.warc")
    for at in range(0, 50, 10):
        warc.add("a", START + at, b"%d" % at)
    warc.add("b", START + 20, b"b")
    file = warc.close()
    window = Window(since=START + 15, until=START + 30)
    assert warc_rows(file, window=window)[0] == [("a", 15, b"10"), ("a", 20, b"20"), ("a", 30, b"30"), ("b", 20, b"b")]
    assert {row[0] for row in warc_rows(file, window=Window(limit=1))[0]} == {"a"}


def test_warc_errors(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    (tmp_path / "no.warc").write_text("this is no WARC file")
    (tmp_path / "empty.warc").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    picture = Warc(tmp_path / "picture.warc")
    picture.add("p", START, b"x", kind="image/png")
    picture.close()
    for name, words in {
        "no.warc": "not a WARC file",
        "empty.warc": "no HTML page",
        "picture.warc": "no HTML page",
        "folder": "contains no .warc",
        "nowhere.warc": "does not exist",
    }.items():
        with pytest.raises(BadArchive, match=words):
            warc_files.convert([tmp_path / name], out)
    assert not list(tmp_path.glob("out*"))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.sampled_from([b"x", b"y", None])), max_size=20),
       st.integers(0, 20))  # fmt: skip
def test_warc_order_of_records_does_not_matter(visits: list[tuple[str, int, bytes | None]], turn: int) -> None:
    """Whatever is told first, and whether contents are repeated or referred to."""
    visits = list({(name, at): (name, at, body) for name, at, body in visits}.values())
    wanted: Rows = []
    for name in "ab":
        before: bytes | None = None
        for at, body in sorted((at, body) for who, at, body in visits if who == name):
            wanted += [(name, at, body)] if body != before else []
            before = body
    with tempfile.TemporaryDirectory() as folder:
        warc = Warc(Path(folder) / "a.warc")
        known: dict[tuple[str, bytes], str] = {}
        for number, (name, at, body) in enumerate(visits[turn:] + visits[:turn]):
            if body is None:
                warc.add(name, START + at, b"gone", status=404)
            elif number % 2 and (name, body) in known:
                warc.again(name, START + at, known[name, body])
            else:
                known[name, body] = warc.add(name, START + at, body)
        file = warc.close()
        if wanted:
            assert warc_rows(file)[0] == wanted
        else:
            with pytest.raises(BadArchive):
                warc_rows(file)


def test_warc_of_a_repository_of_ours(repo: Repo, site: Any, tmp_path: Path) -> None:
    """What we stored ourselves is read as what we export."""
    web = site({"/": page("front", "/a", "/b"), "/a": page("alpha 1"), "/b": page("beta")})
    repo.crawl(web.url())
    for number in (2, 3):
        repo.later(days=3)
        web["/a"] = page(f"alpha {number}")
        web["/b"] = Reply(page("no"), 404)
        repo.cycle()
    repo.run("export", tmp_path / "export.parquet")
    warc_files.convert([repo.folder / "archive"], tmp_path / "warc.parquet")
    exported = [row for row in rows_of(tmp_path / "export.parquet") if row[2] is not None]
    assert [row for row in rows_of(tmp_path / "warc.parquet") if row[2] is not None] == exported
    assert len(exported) == 5


# -- listings --------------------------------------------------------------------------------------------

A, B, C = "A" * 32, "B" * 32, "C" * 32

CDX = f"""\
org,example)/a 20200101000000 http://example.org:80/a text/html 200 {A} 700
org,example)/a 20200102000000 http://example.org/a text/html 200 {B} 800
org,example)/a 20200103000000 http://example.org/a warc/revisit - {B} 300
org,example)/a 20200104000000 http://example.org/a text/html 302 {C} 300
org,example)/a 20200105000000 http://example.org/a text/html 404 {C} 300
org,example)/a 20200106000000 http://example.org/a text/html 200 {A} 700
org,example)/a 20200107000000 http://example.org/a text/html 200 {A} 700
org,example)/a 20200108000000 http://example.org/a text/html 200 {A} 700
org,example)/b 20200102000000 http://example.org/b text/html 200 {A} 700
org,example)/p 20200102000000 http://example.org/p image/png 200 {C} 700
"""
ROWS: dict[str, list[tuple[int, Any]]] = {"a": [(0, A), (1, B), (4, None), (5, A), (7, A)], "b": [(1, A)]}


def listed(file: Path, text: str) -> capture_listings.CaptureListing:
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return capture_listings.read([file])


def days_of(history: History) -> dict[str, list[tuple[float, Any]]]:
    """Rows by page: the day, and a number for the version that is None where it is absent."""
    return {
        url.removeprefix("http://example.org/"): [
            (history.time[row] / DAY, None if history.version[row] == ABSENT else int(history.version[row]))
            for row in range(history.first[number], history.first[number + 1])
        ]
        for number, url in enumerate(history.urls)
    }


def same_rows(history: History, wanted: dict[str, list[tuple[int, Any]]]) -> None:
    """The rows are these, whatever numbers stand for the digests."""
    found = days_of(history)
    assert {name: [day for day, _ in rows] for name, rows in found.items()} == {
        name: [day for day, _ in rows] for name, rows in wanted.items()
    }
    pairs = {
        (digest, version)
        for name, rows in wanted.items()
        for (_, digest), (_, version) in zip(rows, found[name], strict=True)
    }
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert (None, None) in pairs or all(digest for digest, _ in pairs)


def as_json_rows(text: str, *, broken: bool = True) -> str:
    rows = [line.split(" ") for line in text.splitlines()]
    header = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
    glue = ",\n" if broken else ", "
    return "[" + glue.join(json.dumps(row) for row in [header, *rows]) + "]\n"


def as_cdxj(text: str, *, alone: bool = False) -> str:
    lines = []
    for line in text.splitlines():
        key, when, url, mime, status, digest, length = line.split(" ")
        said = {"url": url, "mime": mime, "status": status, "digest": f"sha1:{digest}", "length": length, "offset": "0"}
        if status == "-":
            del said["status"]
        lines.append(
            json.dumps({"urlkey": key, "timestamp": when, **said}) if alone else f"{key} {when} {json.dumps(said)}"
        )
    return "!OpenWayback-CDXJ 1.0\n" + "\n".join(lines)


def reordered(*places: int | str) -> str:
    """The columns in another order; a text stands for itself."""
    lines = [line.split(" ") for line in CDX.splitlines()]
    return "".join(" ".join(at if isinstance(at, str) else line[at] for at in places) + "\n" for line in lines)


FORMS = {
    "cdx": CDX,
    "header": "urlkey timestamp original mimetype statuscode digest length\n" + CDX,
    "letters": " CDX N b a m s k r M S V g\n" + reordered(0, 1, 2, 3, 4, 5, "-", "-", 6, "12", "x.warc.gz"),
    "other order": "timestamp digest original statuscode mimetype\n" + reordered(1, 5, 2, 4, 3),
    "backwards, twice": "\n".join([*CDX.splitlines()[::-1], CDX]),
    "windows": CDX.replace("\n", "\r\n"),
    "json": as_json_rows(CDX),
    "json on a line": as_json_rows(CDX, broken=False),
    "cdxj": as_cdxj(CDX),
    "objects": as_cdxj(CDX, alone=True),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["list", "list.gz"])
def test_listing(tmp_path: Path, form: str, name: str) -> None:
    listing = listed(tmp_path / name, FORMS[form])
    same_rows(listing.history, ROWS)
    assert listing.broken == 0
    assert listing.captures == 10 * (2 if "twice" in form else 1)
    assert "digests" in listing.history.carries
    assert not {"text", "links"} & listing.history.carries
    assert listing.history.change == "raw"
    assert listing.history.size.max() == (0 if form == "other order" else 800)
    assert kind_of(tmp_path / name) == "cdx"
    assert CARRIES[kind_of(tmp_path / name)] == ("digests",)


def test_listing_revisit_has_the_digest_it_repeats(tmp_path: Path) -> None:
    text = f"""\
k 20200101000000 http://example.org/a text/html 200 {A} 1
k 20200102000000 http://example.org/a text/html 404 {B} 1
k 20200103000000 http://example.org/a warc/revisit - {A} 1
k 20200104000000 http://example.org/a warc/revisit - {B} 1
k 20200105000000 http://example.org/a text/html 301 {C} 1
k 20200106000000 http://example.org/a warc/revisit - {C} 1
k 20200107000000 http://example.org/a warc/revisit - {"D" * 32} 1
k 20200108000000 http://example.org/a warc/revisit - - 1
k 20200101000000 http://example.org/unknown warc/revisit - {A} 1
k 20200101000000 http://example.org/never text/html 404 {B} 1
"""
    rows: dict[str, list[tuple[int, Any]]] = {"a": [(0, A), (1, None), (2, A), (3, None), (6, "D")]}
    same_rows(listed(tmp_path / "x", text).history, rows)


def test_listing_with_broken_lines(tmp_path: Path) -> None:
    bad = [
        "k 2020 http://example.org/a text/html 200 AAAA 1",
        "k 20201301000000 http://example.org/a text/html 200 AAAA 1",
        "one",
        'k 20200101000000 {"url": "http://example.org/a", "digest": }',
        'k 20200101000000 {"digest": "A"}',
        "k 20200101000000 http://example.org/a text/html 200",
        "[1, 2",
        "\x00\x01 \ufffd",
    ]
    good = CDX.splitlines()
    listing = listed(tmp_path / "x", "\n".join(bad[:4] + good[:5] + bad[4:] + good[5:] + [""]))
    same_rows(listing.history, ROWS)
    assert (listing.broken, listing.captures) == (len(bad), len(good))
    form = "k 20200101000000 {} text/html 200 {} 1\n"
    other = form.format("ftp://example.org/a", A) + form.format("http://example.org/a", "-")
    assert sorted(listed(tmp_path / "y", CDX + other).remarks.values()) == [1, 1]


def test_listing_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "z.gz").write_bytes(gzip.compress(CDX.encode() * 2000)[:-20])
    listing = capture_listings.read([tmp_path / "z.gz"])
    same_rows(listing.history, ROWS)
    assert listing.remarks == {"files read only up to a damaged place": 1}


def test_listing_errors(tmp_path: Path) -> None:
    for text, words in {
        "": "it is empty",
        "these are\nno captures\n": "no valid line",
        "https://example.org/\n": "no valid line",
        f"k 20200101000000 http://example.org/a image/png 200 {A} 1\n": "no HTML page",
        f"k 20200101000000 http://example.org/a text/html 404 {A} 1\n": "no HTML page",
        f"k 20200101000000 http://example.org/a warc/revisit - {A} 1\n": "no HTML page",
    }.items():
        with pytest.raises(BadArchive, match=words):
            listed(tmp_path / "x", text)
    with pytest.raises(BadArchive, match="does not exist"):
        capture_listings.read([tmp_path / "nowhere"])


seen = st.tuples(st.sampled_from("ab"), st.integers(0, 20), st.sampled_from([A, B, C, "404", "302"]))


@given(st.lists(seen, min_size=1, max_size=25, unique_by=lambda one: one[:2]), st.randoms(use_true_random=False))
def test_listing_any_captures(captured: list[tuple[str, int, str]], lot: Any) -> None:
    """At every time, a page is what its last capture that says anything says."""
    lines = [
        f"k {20200101 + day}000000 http://example.org/{name} text/html {what if len(what) == 3 else 200} {what} 1"
        for name, day, what in captured
    ]
    lot.shuffle(lines)
    with tempfile.TemporaryDirectory() as folder:
        try:
            history = listed(Path(folder) / "x", "\n".join(lines)).history
        except BadArchive:
            assert all(len(what) == 3 for _, _, what in captured)
            return
    first = (history.begins[0] - 1577836800) / DAY
    found = days_of(history)
    numbers: dict[str, int] = {}
    for name in "ab":
        telling = sorted((day, what) for who, day, what in captured if who == name and what != "302")
        there = [day for day, what in telling if what != "404"]
        assert (name in found) == bool(there)
        for day, what in telling:
            now = [version for at, version in found.get(name, []) if at + first <= day]
            if not there or day < there[0]:
                assert now == []
            elif what == "404":
                assert now[-1] is None
            else:
                assert numbers.setdefault(what, now[-1]) == now[-1]
        if there:
            assert found[name][-1][0] + first == telling[-1][0], "the last look tells how long the page was watched"
    assert len(set(numbers.values())) == len(numbers)


# -- what a file is --------------------------------------------------------------------------------------


def test_kinds(work: Work, tmp_path: Path) -> None:
    work.commit({"a.html": b"a"})
    work.convert()
    (tmp_path / "w").mkdir()
    warc = Warc(tmp_path / "w" / "x.warc.gz")
    warc.add("a", START, b"a")
    shutil.copy(warc.close(), tmp_path / "unnamed")
    shutil.copy(work.out, tmp_path / "table")
    kinds = {"work": "git", "w": "warc", "w/x.warc.gz": "warc", "unnamed": "warc"}
    kinds |= {"out.parquet": "parquet", "table": "parquet"}
    assert {name: kind_of(tmp_path / name) for name in kinds} == kinds
    for name in kinds:
        assert CARRIES[kind_of(tmp_path / name)] == ("text", "links", "digests")
    (tmp_path / "urls.txt").write_text("https://example.org/\n")
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b rubbish")
    (tmp_path / "nothing").mkdir()
    for name in ("urls.txt", "bad.gz", "nothing", "nowhere"):
        with pytest.raises(BadArchive, match=name):
            kind_of(tmp_path / name)


# -- the command -----------------------------------------------------------------------------------------


@pytest.fixture
def published(work: Work) -> Work:
    work.commit({"docs/index.html": b"<p>first words", "docs/a.html": b"<p>alpha", "other.html": b"<p>x"})
    work.commit({"docs/index.html": b"<p>second words"})
    work.commit({"docs/a.html": None})
    return work


def test_command_git_to_an_archive(published: Work, tmp_path: Path) -> None:
    """No repository of ours is needed for that."""
    words = ["import", "git", published.folder, "--base-url", BASE, "--branch", "main", "--root", "docs"]
    out = tmp_path / "site.parquet"
    told = json.loads(command(*words, "--out", out, "--json", cwd=tmp_path).out)
    assert (told["kind"], told["pages"], told["versions"], told["removals"]) == ("git", 2, 3, 1)
    assert told["carries"] == ["text", "links", "digests"]
    assert (told["archive"], told["bytes"]) == (str(out), out.stat().st_size)
    assert states(rows_of(out), BASE) == [b"<p>first words", b"<p>second words"]
    spoken = command(*words, "--out", out, "--since", "2020-09-13T14:00", cwd=tmp_path)
    assert spoken.code == 0, spoken
    assert "2 pages" in spoken.out
    assert "2020-09-13 14:00:00Z" in spoken.out


def test_command_git_to_the_repository(repo: Repo, published: Work) -> None:
    told = repo.json("import", published.folder, "--base-url", BASE, "--limit", 2)
    assert told == {"pages": 2, "versions": 3, "refused": [], "remarks": {}}
    assert repo.states() == {BASE + "docs/": "live", BASE + "docs/a.html": "gone"}
    assert repo.found("second") == {BASE + "docs/"}
    assert "imported 1 new pages" in repo.run("import", "git", published.folder, "--base-url", BASE).out


def test_command_warc(repo: Repo, tmp_path: Path) -> None:
    warc = Warc(tmp_path / "x.warc.gz")
    digest = warc.add("a", START, b"<p>alpha")
    warc.again("a", START + DAY, digest)
    warc.add("a", START + 2 * DAY, b"<p>beta")
    warc.again("a", START + 3 * DAY, "sha1:" + "Z" * 32)
    file = warc.close()
    ways: list[list[object]] = [["warc", file], [file], [tmp_path]]
    for number, words in enumerate(ways):
        told = repo.json("import", *words, "--out", tmp_path / f"{number}.parquet")
        assert (told["kind"], told["versions"], told["remarks"]) == ("warc", 2, {})
        assert told["records"]["revisit"]["left_out"] == {"what it repeats is in none of the files": 1}
        (tmp_path / f"{number}.parquet").unlink()
    said = repo.run("import", file)
    assert "1 new pages and 2 versions" in said.out
    assert "what it repeats is in none of the files" in said.out
    assert len(repo.json("log", BASE + "a")) == 2


def test_command_errors(repo: Repo, published: Work, tmp_path: Path) -> None:
    (tmp_path / "list.cdx").write_text(CDX)
    (tmp_path / "urls.txt").write_text("https://example.org/\n")
    (tmp_path / "no.warc").write_text("no WARC")
    git, base, out = ["git", published.folder], ["--base-url", BASE], ["--out", tmp_path / "x.parquet"]
    cases: list[tuple[list[Any], str]] = [
        (git, "--base-url"),
        ([*git, *base, "--branch", "mian"], "'main'"),
        ([*git, tmp_path, *base], "one git repository"),
        (["git", tmp_path, *base], "not a git repository"),
        ([*git, *base, "--out", tmp_path / "x.csv"], "--out"),
        ([*git, *base, "--out", tmp_path / "no" / "x.parquet"], "--out"),
        ([*git, *base, "--since", "soon", *out], "'soon'"),
        ([tmp_path / "list.cdx"], "listing"),
        ([tmp_path / "urls.txt", *out], "--out"),
        ([tmp_path / "urls.txt", *base], "--base-url"),
        ([tmp_path / "urls.txt", "--limit", 3], "--limit"),
        (["warc", tmp_path / "no.warc"], "not a WARC file"),
        (["warc", tmp_path / "nowhere.warc", *out], "nowhere.warc"),
    ]
    for words, told in cases:
        complaint(repo.run("import", *words, code=None), told)
    assert repo.json("status")["pages"] == 0
    assert not (tmp_path / "x.parquet").exists()


def test_command_accepts_a_file_named_git(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("https://example.org/\n")
    monkeypatch.chdir(tmp_path)
    assert repo.json("import", "git")["pages"] == 1
