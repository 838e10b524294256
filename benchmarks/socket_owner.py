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
"""Processes that have asked before."""
_owners: dict[int, int] = {}
"""The process of each socket that was seen. The kernel does not use the number of a socket again."""


def owner(client: tuple[str, int], port: int) -> str:
    """Return the process ID of a connection's client, or UNKNOWN; `port` is that of the server on loopback."""
    inode = _inode(client, port)
    if not inode:
        return UNKNOWN
    if inode not in _owners:
        _look_at(_known)  # one look finds all sockets that they have opened meanwhile
    if inode not in _owners:
        _look_at([int(it.name) for it in Path("/proc").iterdir() if it.name.isdigit()])
    if inode not in _owners:
        return UNKNOWN
    if _owners[inode] not in _known:
        _known.append(_owners[inode])
    return str(_owners[inode])


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


def _look_at(pids: list[int]) -> None:
    for pid in pids:
        with suppress(OSError):
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    name = str(file.readlink())
                    if name.startswith("socket:["):
                        _owners[int(name[8:-1])] = pid
