"""A small shop, made by hand: what the tutorials watch. It changes as it is visited, and is out of order for a while.

kettle   120 €; then the same with another date; then 99 €; then the server fails once; then sold out
others   stay as they are
"""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

FRAME = (
    "<header><a href='/'>The Tea Shop</a> <a href='/notes'>Notes</a></header><main>{}</main>"
    "<footer>Open 9 to 5</footer>"
)
PLAIN = {
    "/": "<h1>The Tea Shop</h1><p>All for tea, since 1987.</p><ul><li><a href='/kettle'>Kettle</a><li>"
    "<a href='/teapot'>Teapot</a><li><a href='/cups'>Cups</a></ul><img src='/leaf.svg' alt='A leaf'>",
    "/teapot": "<h1>Teapot</h1><p class=price>45 €</p><p>Round, brown, for four cups. Made of clay in Devon.</p>",
    "/cups": "<h1>Cups</h1><p class=price>8 €</p><p>Thin porcelain, without a handle, as they are used in Japan.</p>",
    "/notes": "<h1>Notes</h1><p>How long to let green tea stand: <a href='/notes/green'>read on</a>.</p>",
    "/notes/green": "<h1>Green tea</h1><p>Two minutes with water of seventy degrees, no longer, or it turns bitter.</p>"
    "<p>Sencha takes a little less, Gyokuro a little more and cooler water.</p>",
}
KETTLES = (
    ("120 €", "In stock", "3 May 2026"),
    ("120 €", "In stock", "4 May 2026"),
    ("99 €", "In stock", "5 May 2026"),
    None,
    ("99 €", "Sold out", "7 May 2026"),
)


class SmallShop(ThreadingHTTPServer):
    """The server; `url` is where it is."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: Counter[str] = Counter()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: SmallShop

    def do_GET(self) -> None:
        if self.path == "/leaf.svg":
            self._answer(
                200, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><circle r='4'/></svg>", "image/svg+xml"
            )
        elif self.path == "/kettle":
            self._kettle()
        elif self.path in PLAIN:
            title = PLAIN[self.path].partition("<h1>")[2].partition("<")[0]
            self._answer(200, f"<!doctype html><title>{title}</title>" + FRAME.format(PLAIN[self.path]))
        else:
            self._answer(404, "<title>Not found</title><p>There is no such page.")

    def _kettle(self) -> None:
        self.server.asked["/kettle"] += 1
        now = KETTLES[min(self.server.asked["/kettle"], len(KETTLES)) - 1]
        if now is None:
            return self._answer(503, "<title>Sorry</title><p>The shop is being painted.")
        price, stock, date = now
        text = (
            f"<h1>Kettle</h1><p class=price>{price}</p><p id=stock>{stock}</p><p>A kettle of steel that holds two "
            f"litres of water and boils them in four minutes.</p><p class=date>Last updated: {date}</p>"
        )
        return self._answer(200, "<!doctype html><title>Kettle</title>" + FRAME.format(text))

    def _answer(self, status: int, text: str, kind: str = "text/html; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""
