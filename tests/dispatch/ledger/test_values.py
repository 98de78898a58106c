"""Jobs as they are kept."""

from __future__ import annotations

import json

from local_jobs import job

from taskgraph_workers.dispatch.ledger.values import job_from_text, job_to_text
from taskgraph_workers.dispatch.model import Start


def test_a_job_is_kept_as_it_is():
    """All of it, also how it is started, and as the same text each time."""
    for start in (None, Start(), Start("none", ("-v", "/a:/a"), ("sh", "a b.sh"))):
        made = job(start=start, scopes=("s",), env={"A": "x"}, detect={"G": {"detect": "x"}})
        assert job_from_text(job_to_text(made)) == made
        assert job_to_text(job_from_text(job_to_text(made))) == job_to_text(made)


def test_a_job_of_before_there_was_a_start():
    """It is started as the configuration says that starts it."""
    value = json.loads(job_to_text(job()))
    del value["start"]
    assert job_from_text(json.dumps(value)) == job()
