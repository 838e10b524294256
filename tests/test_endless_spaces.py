"""Endless URL spaces end after tens of pages, whatever their URLs look like; real sites lose no page (spec K3)."""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import pytest

from recrawl.compare.noise.filters import NO_NOISE
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.discover.endless_spaces import MOST_SAID, EndlessSpaces
from recrawl.discover.links import LinkReader
from recrawl.errors import Unreadable
from tests.world import Asked, Reply, Repo, Site, page

SITES = Path(__file__).parents[1].parent / "shared" / "data" / "sites"
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
GERMAN = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
]
COLOURS = ["red", "green", "blue", "black", "white", "yellow", "purple", "orange"]
SIZES = ["small", "medium", "large", "huge"]
PRODUCTS = [f"{colour} {size} shirt of cotton" for colour in COLOURS for size in SIZES]


def _word(number: int) -> str:
    return "".join(random.Random(number).choices("bcdfghjklmnprstvw", k=5))


FILTERS = [_word(number) for number in range(100)]


class Article(NamedTuple):
    """A thing that a shop sells."""

    name: str
    price: str
    filters: frozenset[str]


def _article(number: int) -> Article:
    drawn = random.Random(number)
    name = f"{_word(drawn.randrange(400))} {_word(drawn.randrange(2000))} {_word(drawn.randrange(300))}"
    price = f"{drawn.randrange(5, 300)}.{drawn.choice(['99', '49', '00'])} €"
    return Article(name, price, frozenset(drawn.sample(FILTERS, drawn.randrange(8, 25))))


STOCK = [_article(number) for number in range(1000)]


class Shown(NamedTuple):
    """What a page says, and where it leads."""

    text: str
    links: list[str]


Space = Callable[[str], Shown | None]


def months(path: str, front: str, names: list[str], form: str) -> Shown | None:
    """A calendar with a page for each month of every year."""
    parts = path.removeprefix(front).strip("/").split("/")
    if not path.startswith(front) or len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None
    at = int(parts[0]) * 12 + int(parts[1]) - 1
    near = [front + form.format(other // 12, other % 12 + 1) for other in (at - 1, at + 1)]
    return Shown(f"{names[at % 12]} {at // 12}\nMo Di Mi Do Fr Sa So\n1 2 3 4 5 6 7\nno events\nnext month", near)


def sessions(path: str) -> Shown | None:
    """Each page gives its links another session."""
    parts = path.split("/")
    if len(parts) != 4 or parts[1] != "s":
        return None
    drawn = random.Random(path)
    links = [f"/s/{drawn.randbytes(8).hex()}/{name}" for name in ("home", "about", "contact", "imprint", "help")]
    return Shown(f"Welcome to the page {parts[3]}\nYour session is {parts[2]}\nabout contact imprint help", links)


def facets(path: str) -> Shown | None:
    """A shop whose filters are segments of the path, in any order and number."""
    parts = path.strip("/").split("/")
    if parts[0] != "shop":
        return None
    chosen = parts[1:]
    fits = [name for name in PRODUCTS if all(word in name for word in chosen)]
    links = [f"/shop/{'/'.join([*chosen, word])}/" for word in [*COLOURS, *SIZES, "new", "sale", "cotton"]]
    return Shown("\n".join(["Filters: " + " ".join(chosen), *fits, "all products"]), links if len(chosen) < 12 else [])


def queries(path: str) -> Shown | None:
    """The same filters in the query."""
    if not path.startswith("/list"):
        return None
    query = urlsplit(path).query
    chosen = query.split("&") if query else []
    links = [f"/list?{'&'.join([*chosen, f'f={word}'])}" for word in [*COLOURS, *SIZES]]
    return Shown("\n".join([*PRODUCTS, "all products"]), links)


def growing(path: str) -> Shown | None:
    """A server that answers everything below a folder; its relative links make the path longer."""
    if not path.startswith("/docs/"):
        return None
    drawn = random.Random(path)
    links = [f"{path.rstrip('/')}/{drawn.choice(COLOURS)}{drawn.randrange(1000)}/" for _ in range(3)]
    return Shown("Documentation of the product\nYou are here: " + path.replace("/", " ") + "\nchapters", links)


def following(path: str) -> Shown | None:
    """A list that says "next" on each page, also behind its end."""
    if not path.startswith("/results/"):
        return None
    number = int(path.rsplit("/", 1)[1].removesuffix(".html").removeprefix("page-"))
    rows = [f"result {word} of the {MONTHS[number % 12]} report by {COLOURS[number % 8]}" for word in SIZES]
    text = "\n".join(rows) if number < 20 else "no more results"
    return Shown(f"Page {number}\n{text}\nnext", [f"/results/page-{number + 1}.html"])


def views(path: str) -> Shown | None:
    """A calendar with pages of years, months and days, which lead to each other."""
    parts = path.strip("/").split("/")
    if parts[0] != "agenda" or not all(part.isdigit() for part in parts[2:]):
        return None
    view, numbers = parts[1], [int(part) for part in parts[2:]]
    year = numbers[0]
    if view == "year":
        links = [f"/agenda/year/{year - 1}", f"/agenda/year/{year + 1}"]
        links += [f"/agenda/month/{year}/{month}" for month in range(1, 13)]
        return Shown("\n".join([str(year), *MONTHS]), links)
    if view == "month":
        at = year * 12 + numbers[1] - 1
        links = [f"/agenda/month/{other // 12}/{other % 12 + 1}" for other in (at - 12, at - 1, at + 1, at + 12)]
        links += [f"/agenda/day/{year}/{numbers[1]}/{day}" for day in range(1, 29)]
        grid = [" ".join(str(day) for day in range(first, first + 7)) for first in (1, 8, 15, 22)]
        return Shown("\n".join([f"{MONTHS[at % 12]} {year}", *grid, "no events"]), [*links, f"/agenda/year/{year}"])
    day = date(*numbers)
    near = [day - timedelta(1), day + timedelta(1)]
    text = "\n".join([*(f"{it:%A} {it.day} {MONTHS[it.month - 1]} {it.year}" for it in (day, *near)), "no events"])
    return Shown(
        text, [*(f"/agenda/day/{it.year}/{it.month}/{it.day}" for it in near), f"/agenda/month/{day.year}/{day.month}"]
    )


def weeks(path: str) -> Shown | None:
    """A calendar by the week."""
    found = re.fullmatch(r"/kw/(\d+)-W(\d+)", path)
    if found is None:
        return None
    at = int(found[1]) * 52 + int(found[2]) - 1
    monday = date(2026, 1, 5) + timedelta(weeks=at - 2026 * 52)
    sunday = monday + timedelta(6)
    text = f"Week of Monday {monday.day} {MONTHS[monday.month - 1]} to Sunday {sunday.day} {MONTHS[sunday.month - 1]}"
    return Shown(f"{text}\nno events\nnext week", [f"/kw/{it // 52}-W{it % 52 + 1}" for it in (at - 1, at + 1)])


def alternating(path: str) -> Shown | None:
    """Two kinds of pages, each of which leads to the other alone."""
    found = re.fullmatch(r"/(odd|even)/(\d+)", path)
    if found is None:
        return None
    number = int(found[2])
    return Shown("nothing here\nnext", [f"/even/{number}" if found[1] == "odd" else f"/odd/{number + 1}"])


def tokens(path: str) -> Shown | None:
    """Each page gives its links another session, of letters alone, as their first directory."""
    found = re.fullmatch(r"/[a-z]{16}/(\w+)", path)
    if found is None:
        return None
    token = "".join(random.Random(path).choices("abcdefghijklmnopqrstuvwxyz", k=16))
    text = f"Welcome to the page {found[1]}\nabout contact imprint help"
    return Shown(text, [f"/{token}/{name}" for name in ("home", "about", "contact", "imprint", "help")])


def prefixed(path: str) -> Shown | None:
    """Links that put a directory before the path."""
    if not re.fullmatch(r"(/[a-h]{6})*/start/", path):
        return None
    word = "".join(random.Random(path).choices("abcdefgh", k=6))
    return Shown("We are a small company\nContact", [f"/{word}{path}"])


def stock(path: str) -> Shown | None:
    """A shop with a thousand articles and a hundred filters, of which any number can be chosen in any order."""
    place, _, query = path.partition("?")
    parts = place.strip("/").split("/")
    if parts[0] != "stock":
        return None
    chosen = query.split("&f=")[1:] if query else parts[1:]
    fits = [article for article in STOCK if article.filters.issuperset(chosen)]
    lines = [f"Chosen: {' '.join(chosen)}", f"{len(fits)} articles"]
    lines += [line for article in fits[:24] for line in (article.name, article.price)]
    more = [[*chosen, one] for one in FILTERS if one not in chosen]
    links = ["/stock?of=all&f=" + "&f=".join(it) if "?" in path else f"/stock/{'/'.join(it)}/" for it in more]
    return Shown("\n".join([*lines, *FILTERS]), links)


def tags(path: str) -> Shown | None:
    """Posts that have some tags, which lead to those that have one more."""
    parts = path.strip("/").split("/")
    if parts[0] != "tag":
        return None
    posts = [article.name for article in STOCK if article.filters.issuperset(parts[1:])][:10]
    links = [f"/{'/'.join([*parts, one])}" for one in FILTERS[:40]]
    return Shown("\n".join(["Posts with " + " and ".join(parts[1:]), *posts]), links)


def searches(path: str) -> Shown | None:
    """Results that name other searches, of which each differs in a word."""
    if not path.startswith("/search?q="):
        return None
    asked, drawn = path.partition("=")[2].split("+"), random.Random(path)
    others = ["+".join([*asked[-2:], drawn.choice(FILTERS)]) for _ in range(8)]
    lines = [f"Results for {' '.join(asked)}", "Nothing was found", *(other.replace("+", " ") for other in others)]
    return Shown("\n".join(lines), [f"/search?q={other}" for other in others])


def offers(path: str) -> Shown | None:
    """Pages without end, each with some articles of the stock."""
    if not path.startswith("/offers?page="):
        return None
    lines = [line for article in random.Random(path).sample(STOCK, 20) for line in (article.name, article.price)]
    return Shown("\n".join(lines), [f"/offers?page={int(path.partition('=')[2]) + 1}"])


def sorting(path: str) -> Shown | None:
    """The same list by many parameters, each with any value."""
    if not path.startswith("/inventory"):
        return None
    given = dict(part.split("=") for part in path.partition("?")[2].split("&") if part)
    drawn = random.Random(path)
    changed = [given | {name: f"a{drawn.randrange(99)}"} for name in ("sort", "dir", "view", "per", "show", "back")]
    rows = drawn.sample([f"{article.name} {article.price}" for article in STOCK[:40]], 40)
    links = ["/inventory?" + "&".join("=".join(pair) for pair in one.items()) for one in changed]
    return Shown("\n".join(["Inventory", *rows]), links)


def returning(path: str) -> Shown | None:
    """A form whose links name the page that they are on."""
    if not path.startswith("/login"):
        return None
    return Shown("Please log in", [f"/login{number}?to={path.replace('?', '%3F')[:300]}" for number in range(4)])


def dates(path: str) -> Shown | None:
    """A calendar of days, by a date in the query."""
    if not path.startswith("/termine?date="):
        return None
    day = date.fromisoformat(path.partition("=")[2])
    near = [day + timedelta(days) for days in (-30, -7, -1, 1, 7, 30)]
    lines = [f"{it:%A}, {it.day}. {GERMAN[it.month - 1]} {it.year}" for it in (day, *near)]
    return Shown("\n".join([*lines, *(f"{hour:02}:00" for hour in range(24))]), [f"/termine?date={it}" for it in near])


SPACES: dict[str, tuple[str, Space]] = {
    "views": ("/agenda/month/2026/5", views),
    "weeks": ("/kw/2026-W23", weeks),
    "alternating": ("/odd/1", alternating),
    "tokens": ("/abcdefghijklmnop/home", tokens),
    "prefixed": ("/start/", prefixed),
    "cal": ("/cal/2026/5/", lambda path: months(path, "/cal/", MONTHS, "{}/{}/")),
    "calendar": ("/calendar/2026/5", lambda path: months(path, "/calendar/", MONTHS, "{}/{}")),
    "veranstaltungen": (
        "/veranstaltungen/2026/05/",
        lambda path: months(path, "/veranstaltungen/", GERMAN, "{}/{:02}/"),
    ),
    "sessions": ("/s/0123456789abcdef/home", sessions),
    "facets": ("/shop/", facets),
    "queries": ("/list", queries),
    "growing": ("/docs/", growing),
    "next": ("/results/page-1.html", following),
    "stock": ("/stock/", stock),
    "stock in queries": ("/stock?of=all&f=" + FILTERS[0], stock),
    "tags": ("/tag/" + FILTERS[0], tags),
    "searches": ("/search?q=red", searches),
    "offers": ("/offers?page=1", offers),
    "sorting": ("/inventory", sorting),
    "returning": ("/login", returning),
    "dates": ("/termine?date=2026-03-04", dates),
}


def walked(entrance: str, space: Space, most: int = 2000) -> int:
    """The pages that a crawl by breadth requests, at most so many."""
    spaces, asked = EndlessSpaces(), 0
    found_on, behind, made = {entrance: ""}, {entrance: 0}, set[str]()
    waiting = deque([entrance])
    while waiting and asked < most:
        path = waiting.popleft()
        url = f"https://a.example{path}"
        if spaces.leads_on(f"https://a.example{found_on[path]}", url, behind[path], url in made):
            continue
        asked += 1
        shown = space(path)
        if shown is None:
            continue
        links = [urlsplit(urljoin(url, link))._replace(scheme="", netloc="").geturl() for link in shown.links]
        new = [link for link in dict.fromkeys(links) if link not in found_on]
        judged = spaces.judge(url, shown.text, [f"https://a.example{link}" for link in new], behind[path], url in made)
        made |= judged.made
        for link in new:
            if f"https://a.example{link}" not in judged.refused:
                found_on[link], behind[link] = path, judged.behind
                waiting.append(link)
    return asked


@pytest.mark.parametrize("name", SPACES)
def test_an_endless_space_ends_after_tens_of_pages(name: str) -> None:
    most = {"views": 300, "stock": 400, "stock in queries": 400, "offers": 400, "tags": 200}
    assert 20 < walked(*SPACES[name]) <= most.get(name, 150)


def _rare_words(drawn: random.Random, number: int) -> str:
    return " ".join(_word(drawn.randrange(10**6)) for _ in range(number))


def _plain_words(drawn: random.Random, number: int, most: int) -> str:
    """Words as texts have them: few are common, most are rare."""
    return " ".join(_word(int(most ** drawn.random())) for _ in range(number))


ARCHIVES: dict[str, Callable[[random.Random], list[str]]] = {
    "teasers": lambda drawn: [_rare_words(drawn, 4) for _ in range(10)],
    "headlines": lambda drawn: [_rare_words(drawn, 5)],
    "comics": lambda drawn: [_rare_words(drawn, 2)],
    "titles": lambda drawn: [_plain_words(drawn, 3, 5_000)],
    "titles of few words": lambda drawn: [_plain_words(drawn, 3, 300)],
    "long titles of few words": lambda drawn: [_plain_words(drawn, 4, 100)],
    "photos": lambda drawn: [f"{_word(drawn.randrange(300))} {_word(drawn.randrange(300))}"],
    "matches": lambda drawn: [
        f"{_word(drawn.randrange(20))} {_word(drawn.randrange(20))} {drawn.randrange(5)}:{drawn.randrange(5)}"
        for _ in range(9)
    ],
    "weather": lambda drawn: [
        f"{hour}:00 {drawn.gauss(10, 8):.1f} {drawn.gauss(1013, 9):.1f} {drawn.randrange(360)}" for hour in range(24)
    ],
    "parts": lambda drawn: [
        f"Hex bolt of zinc M{drawn.randrange(3, 30)}x{drawn.randrange(8, 200)} no. {drawn.randrange(10**6)}"
        for _ in range(30)
    ],
}
"""What the pages of long lists say that have an end."""


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("form", ["/archive/{}", "/list?page={}", "/2024-{}/", "/archive/page-{}.html"])
def test_a_list_with_news_on_each_page_goes_on(name: str, form: str) -> None:
    def said(path: str) -> Shown:
        number = numbers[path]
        numbers[form.format(number + 1)] = number + 1
        text = "\n".join([f"Page {number}", *ARCHIVES[name](random.Random(path)), "previous next"])
        return Shown(text, [form.format(number + 1)])

    numbers = {form.format(1): 1}
    assert walked(form.format(1), said, 1000) == 1000


@pytest.mark.parametrize("form", ["/photos/{}/", "/{}", "/gallery?name={}"])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("most", [100, 5000])
def test_pages_that_say_nothing_but_their_title_go_on(form: str, width: int, most: int) -> None:
    """Titles of three words, which are the page's URL and what the links to it say."""
    drawn = random.Random(most)
    titles = list(dict.fromkeys(_plain_words(drawn, 3, most) for _ in range(2000)))[:1000]
    urls = [form.format(title.replace(" ", "-")) for title in titles]
    number = {url: at for at, url in enumerate(urls)}

    def said(path: str) -> Shown:
        after = range(number[path] * width + 1, number[path] * width + width + 1)
        known = [at for at in after if at < len(urls)]
        return Shown("\n".join(titles[at].title() for at in [number[path], *known]), [urls[at] for at in known])

    assert walked(urls[0], said) == len(urls)


def _cells(drawn: random.Random) -> list[str]:
    teams = [_word(number).title() for number in range(20)]
    rows = ((drawn.choice(teams), f"{drawn.randrange(5)}:{drawn.randrange(5)}", drawn.choice(teams)) for _ in range(9))
    return [cell for row in rows for cell in row]


def _measures(drawn: random.Random) -> list[str]:
    rows = ((f"{drawn.gauss(10, 8):.1f} °C", f"{drawn.gauss(1013, 9):.1f} hPa") for _ in range(24))
    return [cell for row in rows for cell in row]


@pytest.mark.parametrize("cells", [_cells, _measures])
def test_tables_whose_cells_are_all_known_go_on(cells: Callable[[random.Random], list[str]]) -> None:
    def said(path: str) -> Shown:
        number = int(path.rpartition("/")[2])
        return Shown("\n".join([f"Day {number}", *cells(random.Random(path))]), [f"/results/{number + 1}"])

    assert walked("/results/1", said, 1000) == 1000


def test_a_catalogue_whose_folders_add_a_name_each_goes_on() -> None:
    """Three levels of categories, whose URLs grow as those of filters do, with a line about each."""

    def said(path: str) -> Shown:
        drawn = random.Random(path)
        names = [_word(drawn.randrange(10**6)) for _ in range(10)] if path.count("/") < 5 else []
        return Shown(
            "\n".join([path.replace("/", " "), _plain_words(drawn, 6, 2000), *names]),
            [f"{path}{name}/" for name in names],
        )

    assert walked("/cat/", said) == 1111


def test_pages_without_text_between_pages_with_text_lose_none() -> None:
    """A forum: short profiles lead to others and to threads; the threads, which lead on, have text."""

    def said(path: str) -> Shown:
        kind, number = path.strip("/").split("/")
        at, drawn = int(number), random.Random(path)
        if kind == "user":
            return Shown("posts joined profile threads", [f"/user/{at + 1}"] if at < 1000 else [])
        links = [f"/user/{at * 2}", f"/user/{at * 2 + 1}"]
        return Shown(_rare_words(drawn, 80), [*links, f"/thread/{at + 1}"] if at < 500 else links)

    threads = set[str]()

    def noted(path: str) -> Shown:
        threads.update([path] if "thread" in path else [])
        return said(path)

    walked("/thread/1", noted)
    assert len(threads) == 500


def test_a_space_that_was_endless_is_endless_in_the_next_run() -> None:
    spaces = EndlessSpaces()
    urls = [f"https://a.example/cal/{year}/{month}/" for year in range(2000, 2020) for month in range(1, 13)]
    behind, refused = 0, list[bool]()
    for url, after in pairwise(urls):
        found, behind, _ = spaces.judge(url, "no events", [after], behind)
        refused.append(bool(found))
    assert refused.index(True) == 40
    again = EndlessSpaces(spaces.stored())
    assert not again.judge("https://a.example/cal/1999/1/", "no events", ["https://a.example/cal/1998/12/"], 2).refused
    assert again.judge("https://a.example/cal/1998/12/", "no events", ["https://a.example/cal/1998/11/"], 2).refused
    assert EndlessSpaces().stored() == ""


def test_what_is_remembered_has_a_bound() -> None:
    spaces = EndlessSpaces()
    for host in range(600):
        for number in range(45):
            url = f"https://{host}.example/a/{number}"
            spaces.judge(url, "nothing", [f"{url}0"])
    assert len(spaces.stored()) < 300_000
    assert spaces.judge("https://599.example/a/1", "nothing", ["https://599.example/a/2"], 2).refused
    assert not spaces.judge("https://0.example/a/1", "nothing", ["https://0.example/a/2"], 2).refused, (
        "forgotten, so it begins anew"
    )


def test_barren_pages_that_pages_with_news_lead_to_refuse_nothing_for_long() -> None:
    """Many short pages of the same form, each of which leads to some reports."""
    spaces, lost = EndlessSpaces(), 0
    for part in range(100):
        folder = f"https://a.example/plugins/{_word(part)}"
        start = spaces.judge(f"{folder}/index.html", _rare_words(random.Random(part), 3), [f"{folder}/reports.html"])
        found = spaces.judge(f"{folder}/reports.html", "Reports of this plugin", [f"{folder}/tests.html"], start.behind)
        lost += len(found.refused)
    assert lost == 0


@pytest.mark.skipif(not SITES.is_dir(), reason="no shared/data beside the checkout")
@pytest.mark.slow
def test_real_sites_lose_no_page() -> None:
    """Crawls by breadth of real histories, as they ended; pages that no link leads to are given."""
    pq = pytest.importorskip("pyarrow.parquet")
    seen = lost = 0
    for path in sorted(SITES.glob("*.parquet"))[::6]:
        rows = pq.read_table(path).to_pydict()
        bodies = dict(zip(rows["url"], rows["html"], strict=True))
        site_pages = {url: body for url, body in bodies.items() if body is not None}
        lost += len(refused_pages(site_pages))
        seen += len(site_pages)
    assert seen > 5000
    assert lost <= seen / 2000


def refused_pages(bodies: dict[str, bytes]) -> set[str]:
    """Pages of a site that are refused although links lead to them."""
    reader, spaces = LinkReader(), EndlessSpaces()
    by_name = {url.removesuffix("index.html"): url for url in bodies} | {url: url for url in bodies}
    given = deque(sorted(bodies, key=lambda url: (url.count("/"), len(url))))
    known: set[str] = set()
    lost: set[str] = set()
    behind: dict[str, int] = {}
    made: set[str] = set()
    while given:
        start = given.popleft()
        waiting = deque([] if start in known else [start])
        known.add(start)
        while waiting:
            url = waiting.popleft()
            try:
                tree = parse(decode(bodies[url]).text)
            except Unreadable:
                continue
            links = dict.fromkeys(by_name.get(link, "") for link in reader.read(tree, url).urls)
            new = [link for link in links if link and link not in known]
            judged = spaces.judge(url, text.said(tree, NO_NOISE, MOST_SAID), new, behind.pop(url, 0), url in made)
            lost |= judged.refused
            made |= judged.made
            for link in new:
                if link not in judged.refused:
                    known.add(link)
                    waiting.append(link)
                    behind[link] = judged.behind
    return lost


CHOICES = ("stock", "stock in queries", "tags", "searches", "offers", "sorting", "returning", "dates")
"""Spaces of choices from one stock: they bring something new for longer."""


@contextmanager
def served(names: Iterable[str]) -> Iterator[Site]:
    """A site with some of these spaces, and a blog by date that has an end."""
    drawn, spaces = random.Random(1), [SPACES[name] for name in names]
    posts = [f"/blog/2024/{number:03}/" for number in range(120)]
    stories = [" ".join("".join(drawn.choices("aeioulmnrst", k=6)) for _ in range(30)) for _ in posts]

    def answer(asked: Asked) -> Reply | None:
        for _, space in spaces:
            shown = space(asked.path)
            if shown is not None:
                return Reply(page(shown.text.replace("\n", "</p><p>"), *shown.links))
        return None

    entrances = [entrance for entrance, _ in spaces]
    blog = {path: page(story, after) for path, story, after in zip(posts, stories, [*posts[1:], "/"], strict=True)}
    with Site({"/": page("home", *entrances, posts[0]), **blog}) as site:
        site.every = answer
        yield site


@pytest.fixture
def everything() -> Iterator[Site]:
    """All spaces but those of choices."""
    with served(name for name in SPACES if name not in CHOICES) as site:
        yield site


def test_a_crawl_of_choices_without_end_ends_and_has_every_real_page(tmp_path: Path) -> None:
    with served(CHOICES) as site:
        repo = Repo.create(tmp_path / "repo", index=False)
        repo.add(site.url("/"))
        first = repo.json("crawl")
        assert first["visits"] < 1500
        assert first["left"]["endless-space"] > 1000
        assert len([url for url, row in repo.pages().items() if "/blog/" in url and row["state"] == "live"]) == 120


@pytest.mark.parametrize("index", [True, False])
def test_a_crawl_of_endless_spaces_ends_and_has_every_real_page(everything: Site, tmp_path: Path, index: bool) -> None:
    repo = Repo.create(tmp_path / "repo", index=index)
    repo.add(everything.url("/"))
    first = repo.json("crawl")
    assert first["visits"] < 1000
    assert first["left"]["endless-space"] > 0
    posts = {url for url in repo.pages() if "/blog/" in url}
    assert len(posts) == 120
    for _ in range(2):
        repo.later(days=1)
        everything.forget()
        again = repo.json("crawl")
        assert len(everything.asked()) < 300, again
        assert len(repo.pages()) < 4000
