"""What a download costs: CPU time of the client alone, against a server of its own on this machine.

python examples/download_cost.py [DOWNLOADS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recrawl.fetch.http import Client, Request
from recrawl.lab.synth import SyntheticWorld, write


def cost(address: str, downloads: int) -> float:
    """Milliseconds of CPU time a download."""
    client = Client(agent="recrawl-example", clock=time.perf_counter)
    begun, done = 0, 0
    used = time.process_time()
    while done < downloads:
        while client.room and begun < downloads:
            client.start(begun, Request(address, private=True))
            begun += 1
        for _, answer in client.wait(1.0):
            if answer.failure:
                raise SystemExit(f"{answer.failure.value}: {answer.detail}")
            done += 1
    used = time.process_time() - used
    client.close()
    return 1000 * used / downloads


def main(downloads: int) -> None:
    """Serve a page, and fetch it many times."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "web.parquet"
        write(SyntheticWorld(sites=1, pages=20, days=1), file)
        command = [sys.executable, "-m", "recrawl", "lab", "serve", str(file), "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
            try:
                assert server.stdout is not None
                said = ""
                while not said.endswith("}\n"):
                    said += server.stdout.readline()
                address = json.loads(said)["sites"][0]
                cost(address, 50)  # connections, caches
                print(f"{cost(address, downloads):.3f} ms of CPU time a download, {downloads:,} downloads of {address}")
            finally:
                server.terminate()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
