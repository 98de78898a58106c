"""What the loop says, line by line."""

from __future__ import annotations

import contextlib
import io
import json
import os

from taskgraph_workers.dispatch.log import Log, where

AT = 1521193391.25


def said(as_json: bool = False, quiet: bool = False) -> tuple[Log, io.StringIO]:
    stream = io.StringIO()
    return Log(stream, as_json, quiet, lambda: AT), stream


def test_a_line_has_its_time_its_request_and_what_is_known():
    """Plain text for people; what is empty is left out, and blanks are in quotes."""
    say, stream = said()
    say.info("accepted", "r1", sku="ND6", reason="", attempt=1)
    say.warn("not submitted yet", "r 2", reason="no answer")
    say.error("failed")
    assert stream.getvalue().splitlines() == [
        "2018-03-16T09:43:11.250Z r1: accepted sku=ND6 attempt=1",
        '2018-03-16T09:43:11.250Z warning: "r 2": not submitted yet reason="no answer"',
        "2018-03-16T09:43:11.250Z error: failed",
    ]


def test_nothing_makes_a_second_line():
    """Whatever a program printed, or a broker said, is on the line of its event."""
    say, stream = said()
    say.info("one\ntwo", "r1", reason="a\nb\x1b[2J")
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_json_is_one_object_a_line():
    """With the same fields, and requestId always there."""
    say, stream = said(as_json=True)
    say.info("accepted", "r1", sku="ND6")
    say.error("failed", reason="a\nb")
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {
            "at": "2018-03-16T09:43:11.250Z",
            "level": "info",
            "event": "accepted",
            "requestId": "r1",
            "sku": "ND6",
        },
        {
            "at": "2018-03-16T09:43:11.250Z",
            "level": "error",
            "event": "failed",
            "requestId": None,
            "reason": "a\nb",
        },
    ]


def test_quiet_leaves_out_what_is_well():
    """Warnings and errors stay."""
    say, stream = said(quiet=True)
    say.info("accepted", "r1")
    say.warn("late", "r1")
    assert stream.getvalue().count("\n") == 1


def test_an_error_is_told_by_its_type_and_place():
    """Its text might hold anything."""
    try:
        int("hunter2")
    except ValueError as error:
        told = where(error)
    assert told.startswith("ValueError at ")
    assert "hunter2" not in told


def test_a_line_that_can_not_be_written_stops_nothing():
    """Nor does a reader that went away, nor a stream that is closed."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        say = Log(full)
        say.error("the disk is full", "r1")
        with contextlib.suppress(OSError):
            full.close()
    say.info("closed")
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.suppress(OSError), open(writing, "w", encoding="utf-8") as pipe:
        Log(pipe).warn("nobody reads")
