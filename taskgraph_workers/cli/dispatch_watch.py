"""``dispatch status --watch``: how far requests are, as it changes."""

from __future__ import annotations

import argparse
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Callable

from taskgraph_workers.cli import dispatch_output, dispatch_told, live
from taskgraph_workers.cli.dispatch_state import when
from taskgraph_workers.cli.dispatch_told import Shown
from taskgraph_workers.cli.layout import Styled
from taskgraph_workers.cli.output import Output

#: How often the ledger is looked at.
_EVERY_S = 1.0


def watch(
    args: argparse.Namespace, look: Callable[[], list[Shown]], output: Output
) -> list[Shown] | int:
    """Show whatever changes, until what was asked for has ended: that, as it is then.

    Where a signal ended it before, the exit code that says so.
    """
    try:
        with live.Signals() as signals:
            wire = live.Wire(signals)
            with live.Looks(look, _EVERY_S) as looks:
                watched = _Watched(args, output, wire, looks)
                if args.json:
                    return watched.objects()
                if not live.is_drawn():
                    return watched.lines()
                last = watched.drawn()
            wire.write(live.printed(lambda: dispatch_told.show(args, last, output)))
            return last
    except live.Ended as ended:
        return ended.code


@dataclass(frozen=True)
class _Watched:
    """What is looked at, and where it is shown. Each way to show it ends with what it ended with.

    Each raises live.Ended where a signal comes, and BrokenPipeError where nobody reads it.
    """

    args: argparse.Namespace
    output: Output
    wire: live.Wire
    looks: live.Looks[list[Shown]]

    def objects(self) -> list[Shown]:
        """An object for each change."""
        before: list[Shown] | None = None
        for shown in self._looks():
            if shown != before:
                self._write(lambda: dispatch_told.show(self.args, shown, self.output))  # noqa: B023
            before = shown
            if self._has_ended(shown):
                return shown
        raise AssertionError("looks go on")

    def lines(self) -> list[Shown]:
        """A line for each change: for a file, or a program that reads them."""
        before: dict[str, Shown] = {}
        for shown in self._looks():
            for each in reversed(shown):  # the newest last, as those come that are newer still
                known = before.get(each.request.request_id)
                self._write(lambda: self._changes(known, each))  # noqa: B023
            before = {each.request.request_id: each for each in shown}
            if self._has_ended(shown):
                return shown
        raise AssertionError("looks go on")

    def drawn(self) -> list[Shown]:
        """A view that fills the terminal, and is drawn over in place."""
        shown: list[Shown] | None = None
        with live.Screen(self.wire) as screen:
            while True:
                came = self.wire.wait(_EVERY_S, self.looks.fd)
                if signal.SIGTSTP in came:
                    screen.stop()
                for shown in self.looks.found():
                    if self._has_ended(shown):
                        return shown
                if shown is not None:
                    screen.draw(self._view(shown, screen.height), anew=bool(came))

    def _looks(self) -> Iterator[list[Shown]]:
        while True:
            self.wire.wait(_EVERY_S, self.looks.fd)
            yield from self.looks.found()

    def _write(self, show: Callable[[], None]) -> None:
        self.wire.write(live.printed(show))

    def _has_ended(self, shown: Sequence[Shown]) -> bool:
        return self.args.request is not None and shown[0].request.ended_at is not None

    # --- as lines ---

    def _changes(self, known: Shown | None, now: Shown) -> None:
        one = self.args.request is not None
        for fact in now.facts if one else ():
            if known is None or fact not in known.facts:
                name, data = fact.progress.name, dispatch_told.data_of(fact, now.request)
                self._line(fact.progress.at, now, name, data)
        told = self._told(now)
        if known is None or told != self._told(known):
            self._line(now.request.ended_at or time.time(), now, *told)
        file = dispatch_output.file_of(self.args, now.request) if self._has_ended([now]) else None
        if file is not None:
            output = dispatch_output.near(file)
            self._line(now.request.ended_at or time.time(), now, "output", output)

    def _told(self, shown: Shown) -> tuple[str, ...]:
        """What a line tells of a request; the facts of a single one have lines of their own."""
        so_far = dispatch_told.so_far(shown) if self.args.request is None else ""
        return shown.request.state, so_far, "; ".join(dispatch_told.notes(shown.request))

    def _line(self, at: float, of: Shown, *told: str) -> None:
        words = (when(at), of.request.request_id, *told)
        self.output.whole_line("  ".join(each for each in words if each))

    # --- on a terminal ---

    def _view(self, shown: Sequence[Shown], height: int) -> list[str]:
        """The lines that are drawn, no more than there is room for."""
        if self.args.request is not None:
            return self._one(shown[0], height)[:height]
        lines = self._many(shown)
        if len(lines) <= height:
            return lines
        left = f"{len(lines) - height + 1} lines more: dispatch status shows all"
        return [*lines[: height - 1], *_printed(lambda: self.output.line(Styled(left, "dim")))]

    def _one(self, shown: Shown, height: int) -> list[str]:
        """What is known of it, and as many of the last facts as there is room for."""
        shows = (self.args, shown.request, self.output, False)
        head = _printed(lambda: dispatch_told.show_head(*shows))
        room = height - len(head) - 3
        if not shown.facts or room <= 0:
            return head
        some = replace(shown, facts=shown.facts[-room:])
        title, *facts = _printed(lambda: dispatch_told.show_facts(some, self.output))
        return [*head, "", title, *facts[-room - 1 :]]

    def _many(self, shown: Sequence[Shown]) -> list[str]:
        """How many there are in which state, and a table; what goes on stands first."""
        from taskgraph_workers.dispatch.model import STATES

        count = Counter(each.request.state for each in shown)
        told = ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
        told = told or "there are no requests yet"
        lines = _printed(lambda: self.output.line(Styled(told, "bold")))
        if shown:
            in_order = sorted(shown, key=lambda each: each.request.ended_at is not None)
            lines += ["", *_printed(lambda: dispatch_told.show_many(in_order, self.output))]
        return lines


def _printed(show: Callable[[], object]) -> list[str]:
    return live.printed(show).splitlines()
