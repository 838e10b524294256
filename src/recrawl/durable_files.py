"""Files that are replaced whole: after a crash or a power cut, the old one or the new one is there, never a part.

A new file is written beside the old one under the name `.NAME.part`, brought to the disk, renamed, and the folder is
brought to the disk: in this order. Who writes a draft holds a lock on it, so a draft without a lock was left by a
crash, and the next writer of the file takes it over; several writers at once have drafts of their own. The new file
keeps mode and owner of the old one; a symbolic link stays, and the file that it names is replaced. Errors name the
file, not its draft.

`locked` is for those who read a file, change it and write it: one thread of one process at a time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

_LONGEST_NAME = 240
"""Bytes of a name that leave space for what a draft adds to it."""
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EACCES)
"""Some file systems cannot bring a folder to the disk, and a folder that may not be read cannot be opened for it."""
_NOT_OURS = (errno.ENOENT, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENXIO, errno.ETXTBSY)
"""What opening a draft that is there fails with if it is gone by now, a link, no file, or another user's."""
_DRAFT = re.compile(r"\..+\.part\d*")
_LOCK_FILE = ".changes.lock"
_held = threading.local()


def replace_file(path: Path, data: bytes | str, *, mode: int | None = None, synced: bool = True) -> None:
    """Make these bytes, or this text in UTF-8, the content of a file. For `mode` and `synced` see `replacing`."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    with replacing(path, mode=mode, synced=synced) as draft, draft.open("wb") as out:
        out.write(content)


@contextlib.contextmanager
def replacing(path: Path, *, mode: int | None = None, synced: bool = True) -> Iterator[Path]:
    """Give the path of an empty draft to write to. It replaces the file when the block ends without an exception.

    `mode` is that of the file, whatever the old one has. Without `synced` a power cut can lose or damage the new file:
    for copies and caches whose readers check them. A device or a pipe is given as it is.
    """
    with _naming(path):
        old = _status(path)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if old is not None and not stat.S_ISREG(old.st_mode):
            yield path
            return
        target = path.resolve()
        draft, descriptor = _draft(target, 0o666 if mode is None else mode)
        try:
            _take_over(descriptor, old, mode)
            yield draft
            if synced:
                os.fsync(descriptor)
            draft.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
        finally:
            os.close(descriptor)
        if synced:
            sync_folder(target.parent)


def move_file(old: Path, new: Path) -> None:
    """Give a complete file a name in the same folder, in place of a file of that name."""
    with _naming(new):
        descriptor = os.open(old, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        old.replace(new)
        sync_folder(new.parent)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there, for good."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        sync_folder(path.parent)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, where they are missing; `mode` is that of the lowest."""
    missing = [it for it in (folder, *folder.parents) if not it.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for made in missing:
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the only lock on changes of a file, from reading it to writing it; it may be taken again within.

    The lock is on the folder, so that it leaves no file; where the file system refuses that, on a file in it.
    """
    folder = path.resolve().parent
    held: set[Path] = _held.__dict__.setdefault("folders", set())
    if folder in held:
        yield
        return
    with _naming(path):
        descriptor = _lock(folder)
    held.add(folder)
    try:
        yield
    finally:
        held.remove(folder)
        os.close(descriptor)


def _lock(folder: Path) -> int:
    try:
        return _lock_on(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # NFS locks files only
        return _lock_on(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT)


def _lock_on(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _draft(target: Path, mode: int) -> tuple[Path, int]:
    """An empty draft of a file that nobody else writes: a new one, or one that a crash has left."""
    name = target.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    for number in count():
        path = target.with_name(f".{name}.part{number or ''}")
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
            new = True
        except FileExistsError:
            try:
                descriptor, new = os.open(path, flags), False
            except OSError as error:
                if error.errno in _NOT_OURS:
                    continue
                raise
        try:
            if _is_own(descriptor, path, new=new):
                os.ftruncate(descriptor, 0)
                os.fchmod(descriptor, os.fstat(descriptor).st_mode & 0o777 & mode)
                return path, descriptor
        except BaseException:
            os.close(descriptor)
            if new:
                path.unlink(missing_ok=True)
            raise
        os.close(descriptor)
    raise AssertionError  # not reached: there are always more numbers


def _is_own(descriptor: int, path: Path, *, new: bool) -> bool:
    """Whether this process alone writes a draft: it has the lock, and the draft was not renamed or removed before."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here: a draft that was there may be someone's
        return new
    opened, named = os.fstat(descriptor), _status(path, follow=False)
    return (
        named is not None
        and (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)
        and stat.S_ISREG(opened.st_mode)
        and opened.st_nlink == 1
        and opened.st_uid == os.geteuid()
    )


def _take_over(descriptor: int, old: os.stat_result | None, mode: int | None) -> None:
    """Give a draft the owner and the mode of the old file."""
    if old is None:
        return
    now = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (now.st_uid, now.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode) if mode is None else mode)


def _status(path: Path, *, follow: bool = True) -> os.stat_result | None:
    try:
        return path.stat(follow_symlinks=follow)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors without a file, or about a draft, name this file."""
    try:
        yield
    except OSError as error:
        if error.filename is None or _DRAFT.fullmatch(Path(str(error.filename)).name):
            error.filename, error.filename2 = str(path), None
        raise
