"""Both meanings, compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from adopting import ODD, adopt, hand, translations

from taskgraph_workers.adopt.hand import Hand, read
from taskgraph_workers.adopt.verify import Difference, asked, verify
from taskgraph_workers.config.locate import Source
from taskgraph_workers.errors import ConfigError

KINDS = ("fetch", "train")


def real(tmp_path: Path) -> Hand:
    file = translations(tmp_path)
    return read(Source(str(file), file.read_bytes()), kinds=KINDS)


def test_a_real_project_comes_out_the_same(tmp_path: Path):
    """Nine names, two classes, two kinds, two levels."""
    said = real(tmp_path)
    adopted = adopt(said, default="gcp-spot")
    report = verify(said, adopted.text, adopted.classes)
    assert (report.compared, report.differences, report.problems) == (9 * 2 * 2 * 2, (), ())


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("b-largegpu-xxlargedisk: b-linux-v100-gpu-4-2tb", "b-largegpu-xxlargedisk: images", 8),
        ('GPUS: "0", WORKSPACE: "12000"', 'GPUS: "1", WORKSPACE: "12000"', 8),
        ("b-cpu: b-linux-large-gcp\n", "b-cpu: b-linux-large-gcp-300gb\n", 8),
        ("extends: gcp-spot", "extends: gcp-spot\n            levels: [3]", 0),
        ("- {workers: .*gpu.*", "- {workers: b-cpu", 8),
    ],
)
def test_what_is_changed_is_found(tmp_path: Path, old: str, new: str, count: int):
    """Each change of the text shows in each placement that it changes."""
    said = real(tmp_path)
    adopted = adopt(said, default="gcp-spot")
    assert old in adopted.text
    report = verify(said, adopted.text.replace(old, new), adopted.classes)
    assert len(report.differences) == count


def test_what_a_difference_says():
    """The name, the run, and both values."""
    said = hand("local-worker-aliases: {a: cpu, b: cpu-std}\n")
    text = (
        "workers-config: {profiles: {x: {workers: {a: cpu-std, b: {to: cpu, "
        "implementation: generic-worker, env: {A: {detect: gpu-count}}}}}}}"
    )
    found = verify(said, text, ("x",)).differences
    assert found[0] == Difference("a", "x", "1", "", "pool", "sky-1/cpu", "sky-1/cpu-std")
    assert {(d.what, d.by_hand, d.here) for d in found if d.name == "b" and d.level == "3"} == {
        ("pool", "sky-3/cpu-std", "sky-3/cpu"),
        ("implementation", "docker-worker", "generic-worker"),
        ("A", "not set", "{'detect': 'gpu-count'}"),
    }


def test_what_one_side_refuses():
    """A name without a branch, by hand; a name that is left out, here."""
    said = hand("local-worker-aliases: {cpu: {by-worker-class: {x: cpu-std}}, b: cpu}\n")
    text = "workers-config: {profiles: {x: {}, y: {workers: {b: cpu}}}}"
    found = verify(said, text, ("x", "y")).differences
    assert [(d.name, d.profile, d.what) for d in found if d.level == "1"] == [
        ("cpu", "x", "pool"),
        ("b", "x", "pool"),
        ("cpu", "y", "pool"),
    ]
    assert "leads nowhere" in found[1].here
    assert found[-1].by_hand == "refused: nothing is said of y"


def test_each_project_and_event_that_the_tables_name():
    """Values that differ by them are compared in each."""
    said = hand(
        "local-worker-aliases:\n"
        "    a: {by-tasks-for: {cron: cpu, default: {by-project: {p: gpu-1, default: cpu-std}}}}\n",
        needs=(),
    )
    adopted = adopt(said, default="x")
    report = verify(said, adopted.text, ("x",))
    assert (report.compared, report.differences) == (6, ())
    for branch in ("cron", "p"):
        cut = adopted.text.replace(f"{branch}: ", f"{branch}x: ")
        assert len(verify(said, cut, ("x",)).differences) == 2


def test_patterns_stand_for_a_name():
    """One that they match; a pattern that is too hard to guess is told."""
    said = hand("local-worker-aliases: {'b-(x|y)?gpu.*': cpu, '[^b]{3}': cpu, a: cpu}\n")
    assert asked(said) == (("b-xgpux", "a"), ("[^b]{3}",))


def test_every_oddity_comes_out_the_same():
    """Names that are aliases, patterns, keyed values, merged tables, numbers."""
    said = read(Source(str(ODD), ODD.read_bytes()), kinds=KINDS)
    adopted = adopt(said, default="spot", classes=("lab-1",))
    report = verify(said, adopted.text, adopted.classes)
    assert report.compared == 10 * 3 * 2 * 2
    assert report.differences == ()


def test_a_text_that_the_loader_refuses():
    """Its problems are raised, all at once."""
    with pytest.raises(ConfigError) as raised:
        verify(
            hand("local-worker-aliases: {a: cpu}\n"), "workers-config: {workerz: 1, x: 2}", ("x",)
        )
    assert len(raised.value.problems) == 2
