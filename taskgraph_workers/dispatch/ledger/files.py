"""Where a ledger's file lies: a folder of this machine's."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.errors import Problem

#: The name of the file in its folder.
NAME = "ledger.sqlite"


@dataclass(frozen=True)
class Kind:
    """What a file of the ledger's format is for: what people call it, its name, what says where.

    A ``private`` one is nobody's but this user's. Another is whose its permissions say, so that a
    program of another user may have messages wait there.
    """

    noun: str
    name: str
    option: str
    private: bool


LEDGER = Kind("ledger", NAME, "--state", private=True)
QUEUE = Kind("queue", "queue.sqlite", "--broker", private=False)


#: Types of file systems, as Linux names them, that several machines may share. SQLite's
#: write-ahead log is in shared memory, which they don't share (sqlite.org/wal.html).
SHARED = frozenset(
    [
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "smbfs", "afs", "ceph"),
        *("panfs", "pvfs2", "orangefs", "wekafs", "glusterfs", "fuse.glusterfs", "fuse.ceph"),
        *("fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.blobfuse2", "fuse.rclone"),
    ]
)

_MOUNTS = "/proc/self/mounts"


def filesystem_of(folder: Path, mounts: str = _MOUNTS) -> str:
    """The type of the file system that a folder is on; empty where that can't be told."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    place = os.path.realpath(folder)
    found, longest = "", -1
    for line in lines:
        _, where, kind, *_ = (*line.split(" "), "", "", "")
        mount = _unescaped(where)
        if len(mount) >= longest and _inside(place, mount):
            # A later line of the same place lies over the earlier one.
            found, longest = kind, len(mount)
    return found


def prepared(folder: Path, create: bool, kind: Kind = LEDGER) -> Path:
    """The file in a folder, made private to this user where it has to be. Raises LedgerError.

    What is there already keeps its place.
    """
    file = folder / kind.name
    try:
        if create:
            _make(folder)
            _make_file(file, kind)
        _check(file, kind)
    except FileNotFoundError:
        hint = f"check {kind.option}; sending makes one"
        raise LedgerError(Problem(f"there is no {kind.noun} at {file}", hint=hint)) from None
    except OSError as error:
        raise LedgerError(Problem(f"{error.filename or file}: {error.strerror}")) from None
    return file


def identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from every other one, whatever each is called; None if there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_shared(folder: Path, filesystem: Callable[[Path], str] = filesystem_of) -> str:
    """The type of the file system if several machines may share it, else nothing."""
    kind = filesystem(folder)
    return kind if kind in SHARED else ""


def _make(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _make_file(file: Path, kind: Kind) -> None:
    try:
        made = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        os.close(os.open(file, os.O_RDWR))
        return
    if not kind.private:
        # The group of its folder, if it may write there.
        os.fchmod(made, 0o600 | file.parent.stat().st_mode & 0o060)
    os.close(made)


def _check(file: Path, kind: Kind) -> None:
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(Problem(f"{file} is not a file"))
    if not kind.private:
        return
    if found.st_uid != os.geteuid():
        raise LedgerError(
            Problem(
                f"the ledger {file} belongs to another user (uid {found.st_uid})",
                hint="run as that user, or give a folder of your own by --state",
            )
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        file.chmod(0o600)


def _unescaped(text: str) -> str:
    r"""A blank of a path is ``\040`` in the table of mounts."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _inside(folder: str, mount: str) -> bool:
    return folder == mount or folder.startswith(mount.rstrip("/") + "/")
