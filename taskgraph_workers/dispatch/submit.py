"""From the ledger to an executor: each attempt is looked up there first, then started, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taskgraph_workers.dispatch.executors.base import (
    Executor,
    Impossible,
    NotNow,
    Unreachable,
)
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import attempts, steps
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.values import Attempt
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.model import CANCELED, FAILED, Status

#: How often working on an attempt may fail in an unknown way before the attempt has failed.
MOST_FAILURES = 5


def submit(means: Means, executor: Executor, waiting: Sequence[Attempt]) -> None:
    """Start these jobs. Where the executor can't be reached, all of them wait; none is lost."""
    until = means.clock() + means.pace.turn_s
    for at, mine in enumerate(waiting):
        down = means.down.get(executor.name)
        now = means.clock()
        if down is not None and down.until > now:
            return _put_off(means, waiting[at:], down.until)
        if means.stopped() or now > until:
            return _put_off(means, waiting[at:], attempts.AT_ONCE)
        try:
            _submit(means, executor, mine)
            means.reached(executor.name)
        except Unreachable as error:
            _unreachable(means, executor, mine, error)
        except LedgerError:
            raise
        except Exception as error:
            failed(means, executor, mine, error)


def _submit(means: Means, executor: Executor, mine: Attempt) -> None:
    handle = executor.find(mine.key)
    if handle is None and mine.cancel_asked_at is not None:
        return end(means, mine, CANCELED, Status("canceled", reason="canceled before it ran"))
    if handle is None:
        renewed = _renewed(means, mine)
        if renewed is None:
            return means.say.info("another dispatcher has taken it over", mine.request_id)
        mine = renewed
        reach("before-submit")
        try:
            handle = executor.submit(mine.job)
        except Impossible as error:
            return end(means, mine, FAILED, Status("failed", reason=str(error)))
        reach("after-submit")
    look = means.clock() + means.pace.soon_s
    recorded = means.ledger.do(steps.submitted, mine, handle, look)
    reach("after-record")
    if recorded is None:
        return _stray(means, executor, mine, handle)
    return means.say.info("submitted", mine.request_id, executor=executor.name, handle=handle)


def _renewed(means: Means, mine: Attempt) -> Attempt | None:
    """The attempt, surely ours for long enough to start it; None if it is another's by now."""
    now, own_s = means.clock(), means.pace.own_s
    # More than it was owned for: the clock was set back, and nobody knows how long is left.
    if own_s >= mine.owned_until - now > own_s / 2:
        return mine
    return means.ledger.do(attempts.keep, mine, now + own_s)


def _stray(means: Means, executor: Executor, mine: Attempt, handle: str) -> None:
    """Another took it over meanwhile. Its job has the same key, unless it was never to run."""
    now_is = means.ledger.see(attempts.read, mine.request_id, mine.attempt)
    means.say.warn("another dispatcher had taken it over", mine.request_id, handle=handle)
    if now_is is not None and now_is.is_final and now_is.handle is None:
        executor.cancel(handle)
        executor.release(handle)


def _unreachable(means: Means, executor: Executor, mine: Attempt, error: Unreachable) -> None:
    """It may have happened or not: the next one looks it up before anything else."""
    if not isinstance(error, NotNow):
        means.failed_reaching(executor.name)
    again = means.later(mine.tries)
    means.say.warn(
        "not submitted yet",
        mine.request_id,
        executor=executor.name,
        tries=mine.tries + 1,
        reason=str(error),
    )
    means.ledger.do(steps.unheard, [(mine, again, str(error))], means.clock())


def _put_off(means: Means, mine: Sequence[Attempt], until: float) -> None:
    """Let go of attempts that were not worked on."""
    means.ledger.do(steps.same, [(each, until) for each in mine])


def failed(means: Means, executor: Executor, mine: Attempt, error: Exception) -> None:
    """Working on one attempt failed in a way that nobody foresaw; the others go on."""
    means.unforeseen("working on it failed", error, mine)
    if mine.failures + 1 < MOST_FAILURES:
        means.ledger.do(attempts.failed, mine, means.later(mine.tries))
        return
    if mine.handle is not None:
        try:
            executor.cancel(mine.handle)
        except Exception as again:
            means.unforeseen("it could not be canceled", again, mine)
    reason = f"working on it failed {MOST_FAILURES} times: {type(error).__name__}"
    end(means, mine, FAILED, Status("failed", mine.run, mine.machine, reason))


def end(means: Means, mine: Attempt, to: str, status: Status) -> None:
    """Record how an attempt ended that no executor told of."""
    status = replace(status, run=mine.run)
    if means.ledger.do(attempts.change, mine, to, means.clock(), status) is not None:
        means.say.info(to, mine.request_id, reason=status.reason)
