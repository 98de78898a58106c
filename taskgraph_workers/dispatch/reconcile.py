"""What is not final is looked at again and again, until its executor says how it ended.

Whom nobody can be asked about is unknown, since some time: never failed, never started again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from taskgraph_workers.dispatch.executors.base import AskedToGo, Executor, Portion, Unreachable
from taskgraph_workers.dispatch.executors.progress_file import IGNORED
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.hearing import TURN_S, Hearing
from taskgraph_workers.dispatch.ledger import attempts, steps
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.steps import News
from taskgraph_workers.dispatch.ledger.values import Attempt
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.model import (
    CANCELED,
    DROPPED,
    FAILED,
    MOST_FACTS,
    RUNNING,
    SUBMITTED,
    SUCCEEDED,
    Status,
)
from taskgraph_workers.dispatch.submit import failed

#: The state that each phase leads to. What is missing here is unknown.
_STATES = {
    "queued": SUBMITTED,
    "running": RUNNING,
    "succeeded": SUCCEEDED,
    "failed": FAILED,
    "canceled": CANCELED,
    "lost": FAILED,
}

_LOST = "its executor surely has it no more"


def reconcile(means: Means, executor: Executor, going: Sequence[Attempt]) -> None:
    """Look at these jobs, once, in one call."""
    if not going:
        return
    _cancel(means, executor, going)
    statuses = _poll(means, executor, going)
    hearing = Hearing()
    silent: list[tuple[Attempt, float, str]] = []
    same: list[tuple[Attempt, float]] = []
    for mine in going:
        status = _newest(mine, statuses.get(mine.handle or "", Status("unknown")))
        if status.phase not in _STATES:
            silent.append((mine, _again(means, mine, status), status.reason))
            continue
        portion = _portion(means, hearing, executor, mine)
        if not portion.facts and _is_same(mine, status):
            means.heard(mine.key, portion.mark)
            same.append((mine, _next(means, mine, portion)))
            continue
        news = News(_to(mine, status), status, portion.facts, executor.ephemeral)
        try:
            _settle(means, mine, news, portion)
        except LedgerError:
            raise
        except Exception as error:
            failed(means, executor, mine, error)
    if silent:
        means.ledger.do(steps.unheard, silent, means.clock())
    if same:
        means.ledger.do(steps.same, same)


def _cancel(means: Means, executor: Executor, going: Sequence[Attempt]) -> None:
    """Pass on that jobs are to end; with each look, as the executor may have missed it."""
    for mine in going:
        if mine.cancel_asked_at is None or mine.handle is None:
            continue
        try:
            executor.cancel(mine.handle)
        except Unreachable as error:
            means.say.warn("not canceled yet", mine.request_id, reason=str(error))
        except Exception as error:
            means.unforeseen("it could not be canceled", error, mine)


def _poll(means: Means, executor: Executor, going: Sequence[Attempt]) -> Mapping[str, Status]:
    handles = [mine.handle for mine in going if mine.handle is not None]
    try:
        return executor.poll(handles)
    except Unreachable as error:
        why = str(error)
        means.say.warn("jobs can't be asked about", executor=executor.name, reason=why)
    except Exception as error:
        why = f"asking {executor.name} failed: {type(error).__name__}"
        means.unforeseen(f"asking {executor.name} failed", error)
    return dict.fromkeys(handles, Status("unknown", reason=why))


def _newest(mine: Attempt, status: Status) -> Status:
    """A status; what is told of an earlier run than is known is no news, not even that it ended."""
    if status.run < mine.run and status.phase in _STATES:
        return Status("queued", mine.run, mine.machine, mine.reason)
    if status.phase == "lost" and not status.reason:
        return replace(status, reason=_LOST)
    return status


def _again(means: Means, mine: Attempt, status: Status) -> float:
    if mine.unheard_since is None:
        means.say.warn("nobody can be asked about it", mine.request_id, reason=status.reason)
    return means.later(mine.tries)


def _portion(means: Means, hearing: Hearing, executor: Executor, mine: Attempt) -> Portion:
    """What is new of what was told of a job, or some of that: a later look brings the rest.

    Nothing where it can't be read now.
    """
    assert mine.handle is not None
    mark = means.told.get(mine.key)
    try:
        return hearing.portion(executor, mine.handle, mark)
    except Unreachable as error:
        means.say.warn("its progress can't be read", mine.request_id, reason=str(error))
    except Exception as error:
        means.unforeseen("its progress can't be read", error, mine)
    return Portion((), mark)


def _is_same(mine: Attempt, status: Status) -> bool:
    """Whether the ledger knows all this already."""
    known = mine.state == _to(mine, status)
    run = (status.run, status.machine or mine.machine) == (mine.run, mine.machine)
    heard = mine.unheard_since is None and mine.tries == 0
    said = attempts.storable(status.reason) == mine.reason
    return known and run and heard and said


def _to(mine: Attempt, status: Status) -> str:
    """The state that a status leads to. One that waits for another machine runs all the same."""
    to = _STATES[status.phase]
    return RUNNING if (mine.state, to) == (RUNNING, SUBMITTED) else to


def _next(means: Means, mine: Attempt, portion: Portion) -> float:
    """When to look at it again: soon where there is more, but not before others had a turn."""
    return means.clock() + TURN_S if portion.more else means.next_look(mine)


def _settle(means: Means, mine: Attempt, news: News, portion: Portion) -> None:
    """Write down what is new of a job, and say so."""
    look = _next(means, mine, portion)
    changed = means.ledger.do(steps.settled, mine, news, means.clock(), look)
    reach("after-settled")
    if changed is None:
        return means.say.info("another dispatcher has taken it over", mine.request_id)
    means.heard(mine.key, portion.mark)
    _say_what_is_left_out(means, mine, portion)
    if mine.unheard_since is not None:
        means.say.info("heard of it again", mine.request_id)
    if changed.state != mine.state or (changed.reason and changed.reason != mine.reason):
        means.say.info(
            news.to,
            mine.request_id,
            run=changed.run,
            machine=changed.machine,
            reason=changed.reason,
        )
    return None


def release(means: Means) -> int:
    """Let go of what ended jobs hold, and take what was told last; how many there were."""
    hearing = Hearing()
    held = means.ledger.do(attempts.take_held, means.owner(), means.clock())
    for ended in held:
        executor = means.executor(ended)
        try:
            if executor is None or ended.handle is None:
                means.ledger.do(attempts.release_again, ended, means.not_here(ended))
                continue
            executor.release(ended.handle)
            reach("after-release")
            _told_last(means, hearing, executor, ended)
        except LedgerError:
            raise
        except AskedToGo as error:
            means.say.warn("not let go of yet", ended.request_id, reason=str(error))
            assert executor is not None
            told = (ended, executor.ephemeral, means.clock(), means.later(ended.tries))
            means.ledger.do(steps.asked_to_go, *told)
        except Exception as error:
            _still_held(means, ended, error)
    return len(held)


def _told_last(means: Means, hearing: Hearing, executor: Executor, ended: Attempt) -> None:
    """Take what was told last, some at a time; it holds nothing any more when that was all."""
    assert ended.handle is not None
    portion = hearing.portion(executor, ended.handle, means.told.get(ended.key))
    told = (ended, portion.facts, executor.ephemeral, means.clock())
    if portion.more:
        means.ledger.do(steps.told, *told, means.clock() + TURN_S)
        means.heard(ended.key, portion.mark)
    else:
        means.ledger.do(steps.released, *told)
        means.told.pop(ended.key, None)
    _say_what_is_left_out(means, ended, portion)


def _say_what_is_left_out(means: Means, mine: Attempt, portion: Portion) -> None:
    """Say, once for each run, how many lines of a trainer's were none, and once that it told on."""
    for fact in portion.facts:
        if fact.name == IGNORED and "lines" in fact.data:
            lines = fact.data["lines"]
            means.say.warn("lines of its progress were ignored", mine.request_id, lines=lines)
        elif fact.name == DROPPED:
            means.say.warn("no more of its progress is kept", mine.request_id, after=MOST_FACTS)


def _still_held(means: Means, ended: Attempt, error: Exception) -> None:
    if isinstance(error, Unreachable):
        means.say.warn("not let go of yet", ended.request_id, reason=str(error))
    else:
        means.unforeseen("letting go of it failed", error, ended)
    means.ledger.do(attempts.release_again, ended, means.later(ended.tries))
