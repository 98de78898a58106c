"""Samples: their columns, and how many there are where that can be told."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from merlin_texts import HEAD, STUDY, faults, notes, read


def count(file: Path | str) -> int | None:
    samples = f"merlin: {{samples: {{column_labels: [X], file: '{file}'}}}}\n"
    return read(HEAD + STUDY + samples).samples


def npy(rows: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}), }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


@pytest.mark.parametrize(
    ("name", "content", "number"),
    [
        ("s.csv", b"1,2\n3,4\n\n# no\n5,6 # yes", 3),
        ("s.tab", b"1 2\n3 4\n", 2),
        ("s.npy", npy("12, 2"), 12),
        ("s.npy", npy("7,"), 7),
        ("s.npy", npy(""), None),
        ("s.npy", b"nothing of numpy's", None),
        ("s.txt", b"1\n2\n", None),
    ],
)
def test_a_file_that_is_there(tmp_path: Path, name: str, content: bytes, number: int | None):
    """Its rows are counted, without numpy; what can't be counted is not guessed."""
    (tmp_path / name).write_bytes(content)
    assert count(tmp_path / name) == number


@pytest.mark.parametrize("file", ["nowhere.csv", "$(MERLIN_INFO)/samples.npy", "/"])
def test_a_file_that_is_not_there_yet(file: str):
    """How many samples a command will make is not known."""
    assert count(file) is None


def test_no_samples():
    """There are none, then."""
    assert read(HEAD + STUDY + "merlin: {samples: }\n").samples == 0


def test_faults():
    """What Merlin fails on, and keys in which its own test specs see a fault."""
    text = f"{HEAD}global.parameters: {{P: {{values: [1], label: P}}}}\n{STUDY}merlin:\n"
    samples = "  samples: {column_labels: [P, A, A], fil: x, generate: {cmds: x}}\n  sample: 1\n"
    assert faults(text + samples) == [
        "6: merlin.samples.column_labels: 'P' is a global parameter, and can't name a column of"
        " the samples too",
        "6: merlin.samples.column_labels.2: 'A' stands here twice",
        "6: merlin.samples.fil: 'fil' is no key of merlin.samples: Merlin drops it without a word",
        "6: merlin.samples.generate: needs a cmd",
        "6: merlin.samples.generate.cmds: 'cmds' is no key of samples.generate: Merlin drops it"
        " without a word",
        "7: merlin.sample: 'sample' is no key of merlin: Merlin drops it without a word",
    ]


def test_samples_without_a_file():
    """Merlin takes them where its command line has a file."""
    spec = read(HEAD + STUDY + "merlin: {samples: {column_labels: [X]}}\n")
    assert spec.samples is None
    assert "--samplesfile" in notes(spec)[0]
