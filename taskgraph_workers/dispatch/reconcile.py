"""What is not final is looked at again and again, until its executor says how it ended.

Whom nobody can be asked about is unknown, since some time: never failed, never started again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from taskgraph_workers.dispatch.executors.base import Executor, Unreachable
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import attempts, steps
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.steps import News
from taskgraph_workers.dispatch.ledger.values import Attempt
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.model import (
    CANCELED,
    FAILED,
    RUNNING,
    SUBMITTED,
    SUCCEEDED,
    Progress,
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
    silent: list[tuple[Attempt, float]] = []
    same: list[tuple[Attempt, float]] = []
    for mine in going:
        status = _newest(mine, statuses.get(mine.handle or "", Status("unknown")))
        if status.phase not in _STATES:
            silent.append((mine, _again(means, mine, status)))
            continue
        facts = _facts(means, executor, mine)
        if _is_same(means, mine, status, facts):
            same.append((mine, means.next_look(mine)))
            continue
        try:
            _settle(means, mine, News(_to(mine, status), status, facts, executor.ephemeral))
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
    try:
        return executor.poll([mine.handle for mine in going if mine.handle is not None])
    except Unreachable as error:
        means.say.warn("jobs can't be asked about", executor=executor.name, reason=str(error))
    except Exception as error:
        means.unforeseen(f"asking {executor.name} failed", error)
    return {}


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


def _facts(means: Means, executor: Executor, mine: Attempt) -> tuple[Progress, ...]:
    """All that was told of a job; nothing where that can't be read now: a later look brings it."""
    assert mine.handle is not None
    try:
        return tuple(executor.progress(mine.handle))
    except Unreachable as error:
        means.say.warn("its progress can't be read", mine.request_id, reason=str(error))
    except Exception as error:
        means.unforeseen("its progress can't be read", error, mine)
    return ()


def _is_same(means: Means, mine: Attempt, status: Status, facts: tuple[Progress, ...]) -> bool:
    """Whether the ledger knows all this already."""
    known = mine.state == _to(mine, status)
    run = (status.run, status.machine or mine.machine) == (mine.run, mine.machine)
    heard = mine.unheard_since is None and mine.tries == 0
    said = attempts.storable(status.reason) == mine.reason
    return known and run and heard and said and (not facts or means.is_told(mine.key, facts))


def _to(mine: Attempt, status: Status) -> str:
    """The state that a status leads to. One that waits for another machine runs all the same."""
    to = _STATES[status.phase]
    return RUNNING if (mine.state, to) == (RUNNING, SUBMITTED) else to


def _settle(means: Means, mine: Attempt, news: News) -> None:
    """Write down what is new of a job, and say so."""
    now = means.clock()
    changed = means.ledger.do(steps.settled, mine, news, now, means.next_look(mine))
    reach("after-settled")
    if changed is None:
        return means.say.info("another dispatcher has taken it over", mine.request_id)
    means.tell(mine.key, news.facts)
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
    held = means.ledger.do(attempts.take_held, means.owner(), means.clock())
    for ended in held:
        executor = means.executor(ended)
        try:
            if executor is None or ended.handle is None:
                means.ledger.do(attempts.release_again, ended, means.not_here(ended))
                continue
            executor.release(ended.handle)
            reach("after-release")
            facts = tuple(executor.progress(ended.handle))
            means.ledger.do(steps.released, ended, facts, executor.ephemeral, means.clock())
            means.told.pop(ended.key, None)
        except LedgerError:
            raise
        except Exception as error:
            _still_held(means, ended, error)
    return len(held)


def _still_held(means: Means, ended: Attempt, error: Exception) -> None:
    if isinstance(error, Unreachable):
        means.say.warn("not let go of yet", ended.request_id, reason=str(error))
    else:
        means.unforeseen("letting go of it failed", error, ended)
    means.ledger.do(attempts.release_again, ended, means.later(ended.tries))
