"""Reader processes that start at once, for the hundreds of tests that crawl.

Most of the time that a small crawl takes is the start of its reader: Python, numpy and the parsers. Here readers are
forked from a process that has imported all of it. They run the same code with the same pipe, and can be killed like
others. Tests of the command line as a process, `test_crash.py` and `test_serve_processes.py` start readers as users do.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from recrawl.cluster.reader_server import ServedReader


def fork_reader(server: socket.socket, request: bytes = b"r") -> tuple[ServedReader, Connection]:
    """Ask a process that forks readers for one."""
    ours, theirs = Pipe()
    with theirs:
        socket.send_fds(server, [request], [theirs.fileno()])
        return ServedReader(int.from_bytes(server.recv(8), "big")), ours


class WarmReaders:
    """The process from which readers are forked; it starts with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start_reader(self) -> tuple[ServedReader, Connection]:
        """Start a reader; return it and our end of its pipe, as `reader_pool.start_reader` does."""
        with self._lock:
            return fork_reader(self._socket or self._start())

    def _start(self) -> socket.socket:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        return self._socket

    def close(self) -> None:
        """End the process; its readers end with it."""
        if self._socket and self._process:
            self._socket.close()
            self._process.wait(60)


def _fork_readers(requests: socket.socket) -> None:
    from recrawl.compare import significance  # noqa: F401 (loads scipy once, for all)
    from recrawl.crawl.visits import reader_process

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    parent = os.getpid()
    while True:
        request, fds, _, _ = socket.recv_fds(requests, 1, 1)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            requests.close()
            os.setpgid(0, 0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.argv = ["reader", str(fds[0]), str(parent)]
            reader_process.main()
            os._exit(0)
        os.close(fds[0])
        requests.send(pid.to_bytes(8, "big"))


if __name__ == "__main__":
    _fork_readers(socket.socket(fileno=int(sys.argv[1])))
