"""The process at the other end of a connection on loopback, as the kernel names it.

The kernel is asked for the inode of the other end's socket (netlink, `sock_diag`), and the process is the one that has
the socket open. So two clients are told apart without their help.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from pathlib import Path

UNKNOWN = "?"
"""A client that has ended before it was looked for."""

_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBBI")
_PORTS = struct.Struct("!HH")
_INODE = 84
"""Where the answer has the inode."""
_known: list[int] = []


def owner(client: tuple[str, int], port: int) -> str:
    """Return the process ID of a connection's client, or UNKNOWN; `port` is that of the server on loopback."""
    inode = _inode(client, port)
    if not inode:
        return UNKNOWN
    for pid in [*_known, *(int(it.name) for it in Path("/proc").iterdir() if it.name.isdigit())]:
        if _has_open(pid, f"socket:[{inode}]"):
            if pid not in _known:
                _known.append(pid)
            return str(pid)
    return UNKNOWN


def _inode(client: tuple[str, int], port: int) -> int:
    address = socket.inet_aton(client[0]) + bytes(12)
    here = socket.inet_aton("127.0.0.1") + bytes(12)
    # No interface, and no cookie: the addresses alone say which socket is meant.
    which = _PORTS.pack(client[1], port) + address + here + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    body = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + which
    header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as kernel:
        kernel.send(header + body)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return 0
    return int(struct.unpack_from("=I", answer, _INODE)[0])


def _has_open(pid: int, name: str) -> bool:
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if str(file.readlink()) == name:
                    return True
    return False
