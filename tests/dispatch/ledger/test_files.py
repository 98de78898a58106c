"""Where a ledger may lie, and who may read it."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from taskgraph_workers.dispatch.ledger import files, queries
from taskgraph_workers.dispatch.ledger.database import Settings, open_ledger
from taskgraph_workers.dispatch.ledger.errors import LedgerError, LedgerUnavailable

MOUNTS = """\
/dev/vda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local\\040disk xfs rw 0 0
mgs@tcp:/scratch /scratch lustre rw 0 0
none /scratch tmpfs rw 0 0
odd
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/home/me/state", "nfs4"),
        ("/homeless", "ext4"),
        ("/home/local disk/state", "xfs"),
        ("/scratch/me", "tmpfs"),
    ],
)
def test_the_nearest_mount_says_the_type(tmp_path: Path, folder: str, kind: str):
    """The deepest mount counts, and of two at one place the later one."""
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert files.filesystem_of(Path(folder), str(mounts)) == kind


def test_no_table_of_mounts_is_no_fault(tmp_path: Path):
    """Where no system says what a folder is on, nothing is held against it."""
    assert files.filesystem_of(tmp_path, str(tmp_path / "absent")) == ""


def test_this_machine_says_what_its_folders_are_on():
    """The real table of mounts is understood."""
    if not os.path.exists("/proc/self/mounts"):
        pytest.skip("only Linux has /proc/self/mounts")
    assert files.filesystem_of(Path("/proc")) == "proc"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "beegfs", "fuse.sshfs"])
def test_a_shared_file_system_is_refused(tmp_path: Path, kind: str):
    """Nothing is made on a file system whose machines share no memory."""
    with pytest.raises(LedgerError, match=f"would be on {kind}") as raised:
        open_ledger(tmp_path / "state", Settings(filesystem=lambda _: kind))
    assert "on a disk of this machine's by --state" in raised.value.problems[0].hint
    assert not (tmp_path / "state").exists()


def test_a_disk_of_this_machine_has_a_write_ahead_log(tmp_path: Path):
    """On a local disk commits are durable, and readers wait for nobody."""
    with open_ledger(tmp_path, Settings(filesystem=lambda _: "ext4")) as ledger:
        pragmas = [
            ledger.see(lambda conn, name=name: conn.exec_driver_sql(f"PRAGMA {name}").scalar())
            for name in ("journal_mode", "synchronous")
        ]
    assert pragmas == ["wal", 2]


def test_a_new_ledger_is_its_user_s_alone(tmp_path: Path):
    """Folder and file, and what SQLite puts beside it, are closed to others, whatever the umask."""
    old = os.umask(0)
    try:
        with open_ledger(tmp_path / "a" / "state"):
            modes = {path.name: mode(path) for path in (tmp_path / "a" / "state").iterdir()}
    finally:
        os.umask(old)
    assert mode(tmp_path / "a" / "state") == 0o700
    assert modes == {name: 0o600 for name in modes}
    assert "ledger.sqlite" in modes


def test_a_file_that_others_can_read_is_closed(tmp_path: Path):
    """A ledger that was copied with loose permissions is made private."""
    open_ledger(tmp_path).close()
    (tmp_path / files.NAME).chmod(0o644)
    open_ledger(tmp_path).close()
    assert mode(tmp_path / files.NAME) == 0o600


def test_another_user_s_ledger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file that another user may exchange at any time is not worked on."""
    open_ledger(tmp_path).close()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(LedgerError, match="belongs to another user"):
        open_ledger(tmp_path)


def test_what_only_looks_makes_nothing(tmp_path: Path):
    """Without ``create``, a folder without ledger is an error, and stays as it is."""
    with pytest.raises(LedgerError, match="there is no ledger at"):
        open_ledger(tmp_path / "state", Settings(create=False))
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_nothing_can_be_made_is_told(tmp_path: Path):
    """A file where the folder should be gives one clear error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="file"):
        open_ledger(tmp_path / "file")
    (tmp_path / files.NAME).mkdir()
    with pytest.raises(LedgerError, match=r"ledger\.sqlite"):
        open_ledger(tmp_path)


@pytest.mark.parametrize("name", ["a b", "what?", "100%41", "#1", "ünï", "semi;colon"])
def test_any_name_of_a_folder_will_do(tmp_path: Path, name: str):
    """The name of a folder is never read as part of a URL."""
    open_ledger(tmp_path / name).close()
    assert (tmp_path / name / files.NAME).stat().st_size > 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_ledger_that_goes_away_while_it_is_open(tmp_path: Path, how: str):
    """It is not written on, where nobody would read it; moved back, it goes on."""
    with open_ledger(tmp_path / "state") as ledger:
        assert ledger.see(queries.is_idle)
        (tmp_path / "state").rename(tmp_path / "away")
        if how == "deleted":
            shutil.rmtree(tmp_path / "away")
        if how == "replaced":
            open_ledger(tmp_path / "state").close()
        for call in (ledger.see, ledger.do):
            with pytest.raises(LedgerError, match="was moved or deleted") as raised:
                call(queries.is_idle)
            assert not isinstance(raised.value, LedgerUnavailable)
        if how == "moved":
            (tmp_path / "away").rename(tmp_path / "state")
            assert ledger.see(queries.is_idle)
