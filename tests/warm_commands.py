"""The command `recrawl` as a process that starts at once, for the hundreds of commands in the examples of the docs.

A command takes half a second to import what it needs, and its readers as long again. Here both are forked from a
process that has imported it. The command has its own folder, environment, standard streams and signals, and ends when
its client is killed. Tests that kill or measure processes start them as users do.

    with WarmCommands(folder) as warm:
        subprocess.run([warm.client, "-C", "repo", "crawl"])
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from recrawl import cli
from recrawl.cluster.reader_server import ServedReader
from recrawl.crawl.visits import reader_pool, reader_process
from tests.warm_readers import fork_reader

_CLIENT = """#!{python} -IS
import os, signal, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
words = [os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:], *(f"{{k}}={{v}}" for k, v in os.environ.items())]
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: server.send(bytes([number])))
socket.send_fds(server, ["\\0".join(words).encode("utf-8", "surrogateescape")], [0, 1, 2])
code = server.recv(1)
sys.exit(code[0] if code else "the process of the command has gone")
"""
_LONGEST = 1 << 17
"""Bytes of a request: folder, arguments and environment."""
_READER = b"reader"


class WarmCommands:
    """The process from which commands are forked; `client` is a program that has one forked and waits for its end."""

    def __init__(self, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = {**environment, "OPENBLAS_NUM_THREADS": "1"}
        self.address = str(folder / "commands.socket")
        self.client = folder / "recrawl"
        self.client.write_text(_CLIENT.format(python=sys.executable, address=self.address))
        self.client.chmod(0o755)

    def __enter__(self) -> Self:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.address)
        listener.listen(64)  # clients can connect now; they are answered when the process is ready
        ours, theirs = socket.socketpair()
        with listener, theirs:
            fds = [listener.fileno(), theirs.fileno()]
            words = [sys.executable, "-m", "tests.warm_commands", self.address, *map(str, fds)]
            root = Path(__file__).parents[1]
            self._process = subprocess.Popen(
                words, cwd=root, pass_fds=fds, stdin=subprocess.DEVNULL, env=self._environment
            )
        self._ours = ours
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        self._process.wait(60)


def _serve(address: str, listener: socket.socket, owner: socket.socket) -> None:
    """Fork a process for each client, until the owner has gone."""
    for module in pkgutil.walk_packages(cli.__path__, "recrawl.cli."):
        importlib.import_module(module.name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    parent = os.getpid()
    while listener in select.select([listener, owner], [], [])[0]:
        client = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            owner.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(client, address, parent)
            os._exit(0)
        client.close()


def _answer(client: socket.socket, address: str, parent: int) -> None:
    request, fds, _, _ = socket.recv_fds(client, _LONGEST, 3)
    if request == _READER:
        os.setpgid(0, 0)
        peer = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        os.chdir(f"/proc/{peer}/cwd")  # the archive may lie in the folder of the command
        client.send(os.getpid().to_bytes(8, "big"))
        sys.argv = ["reader", str(fds[0]), str(parent)]
        reader_process.main()
        return
    child = os.fork()
    if child == 0:
        client.close()
        _run(request.decode("utf-8", "surrogateescape").split("\0"), fds, address)
    client.send(bytes([_end_of(child, client)]))


def _end_of(child: int, client: socket.socket) -> int:
    """The exit code of a command. Signals of the client are passed on; if the client is killed, so is the command."""
    ended = os.pidfd_open(child)
    either: list[Any] = [ended, client]
    while ended not in (ready := select.select(either, [], [])[0]):
        number = client.recv(1) if client in ready else b""
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number[0] if number else signal.SIGKILL)
        if not number:
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _run(request: list[str], fds: list[int], address: str) -> None:
    """Be the command: as `python -m recrawl` would be."""
    os.setpgid(0, 0)
    folder, count, *words = request
    os.chdir(folder)
    os.environ.clear()
    for name, _, value in (word.partition("=") for word in words[int(count) :]):
        os.environ[name] = value
    for fd, wanted in zip(fds, (0, 1, 2), strict=True):
        os.dup2(fd, wanted)
        os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(os.dup(fd), "r" if fd == 0 else "w") for fd in (0, 1, 2))
    reader_pool.start_reader = lambda: _start_reader(address)
    code = 1
    try:
        code = cli.invoke(words[: int(count)])
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _start_reader(address: str) -> tuple[ServedReader, Connection]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        return fork_reader(server, _READER)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as `recrawl.cli.main` does
    _serve(sys.argv[1], *(socket.socket(fileno=int(fd)) for fd in sys.argv[2:]))
