"""What HTTP/2 costs the client, against HTTP/1.1: CPU time of a download over TLS on loopback.

    python -m benchmarks.http2 [--downloads 1500] [--rounds 5]

One server (hypercorn, which speaks both; `pip install hypercorn trustme`) in a process of its own, one page of 20 kB,
the client that the crawler uses. `per_server` requests at a time, as the setting of this name; rounds alternate.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trustme

from recrawl.fetch.access import Accesses, AccessRule
from recrawl.fetch.fetcher import Request
from recrawl.fetch.http import Client

_APP = """
BODY = b"<p>" + b"words of a page " * 1280
async def app(scope, receive, send):
    if scope["type"] == "http":
        headers = [(b"content-type", b"text/html"), (b"content-length", str(len(BODY)).encode()), (b"etag", b'"v1"')]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})
    elif scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
"""


def cost(url: str, authority: Path, downloads: int, at_once: int, *, http2: bool) -> float:
    """Microseconds of CPU time of the client for one download."""
    origin = url.rstrip("/")
    accesses = Accesses([AccessRule(origin, ca_file=str(authority), http2=http2)])
    client = Client(agent="benchmark", profiles=accesses.of)
    begun = done = 0
    used = 0.0
    while done < downloads:
        while begun - done < at_once and begun < downloads:
            client.start(begun, Request(f"{url}{begun}", allow_private=True))
            begun += 1
        for _, answer in client.wait(1.0):
            assert answer.status == 200, answer
            done += 1
            if done == 50:  # after the handshakes
                used = time.process_time()
    used = time.process_time() - used
    client.close()
    return 1e6 * used / (downloads - 50)


def main() -> None:
    """Serve, measure, print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http2", description=__doc__)
    parser.add_argument("--downloads", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        folder = Path(name)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        certificate = authority.issue_cert("127.0.0.1")
        certificate.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
        (folder / "served.py").write_text(_APP)
        command = [
            sys.executable,
            "-m",
            "hypercorn",
            "-b",
            f"127.0.0.1:{port}",
            "--certfile",
            str(folder / "server.pem"),
        ]
        command += ["--keyfile", str(folder / "server.pem"), "served:app"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            while "Running on" not in (line := server.stderr.readline()):
                assert line, "the server did not start"
            print("requests at a time | HTTP/1.1 µs | HTTP/2 µs | ratio, median (lowest to highest)")
            for at_once in (1, 8):
                rounds = [
                    [
                        cost(f"https://127.0.0.1:{port}/", folder / "ca.pem", chosen.downloads, at_once, http2=http2)
                        for http2 in (False, True)
                    ]
                    for _ in range(chosen.rounds)
                ]
                ratios = sorted(two / one for one, two in rounds)
                one, two = (statistics.median(row[place] for row in rounds) for place in (0, 1))
                spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
                print(f"{at_once} | {one:.0f} | {two:.0f} | {statistics.median(ratios):.2f} ({spread})", flush=True)
            server.terminate()


if __name__ == "__main__":
    main()
