"""Graphs that are made in this process, against those that `taskgraph` makes in its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.graph.project import REPOSITORY, Project
from tests.graph.support import EXAMPLE, LOCAL, ROOT, full_graph

PARAMS = EXAMPLE / "test" / "params"
WORKERS_CONFIG = """
    workers-config:
        profiles:
            cloud: {workers: {b-gpu: b-other}}
            onprem: {workers: {b-gpu: shop-onprem/big}}
        select: {default: cloud}
"""


def run(program: str, *arguments: object, cwd: Path = ROOT, **env: str) -> Any:
    """Return what a Python program, in a process of its own, printed as JSON.

    What it registers in Taskgraph would otherwise be there for every later test.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LOCAL)}
    fixed = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    # The example gives itself one; the small projects here have none.
    urls = {} if cwd == ROOT else {"TASKCLUSTER_ROOT_URL": "https://tc.example.com"}
    head = "import json, os, sys\nfrom taskgraph_workers.graph.generate import *\n"
    ended = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(program), *map(str, arguments)],
        cwd=cwd,
        env={**clean, **fixed, **urls, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_several_graphs_in_one_process_are_those_of_the_command():
    """Three profiles, one after another: task by task what `taskgraph full` makes of each."""
    graphs = run(
        """
        made = {
            name: generate(Wanted(sys.argv[1], sys.argv[2], choice=name)).tasks
            for name in ("gcp-spot", "onprem", "gcp-standard")
        }
        print(json.dumps(made))
        """,
        EXAMPLE,
        PARAMS / "pull-request.yml",
    )
    for name, graph in graphs.items():
        env = {"TASKGRAPH_WORKERS_PROFILE": name}
        assert graph == full_graph(EXAMPLE, PARAMS / "pull-request.yml", env)


def test_the_environment_plays_no_part():
    """TASKGRAPH_WORKERS_PROFILE moves nothing, with or without a choice, and is still there."""
    names, still = run(
        """
        wanted = [Wanted(sys.argv[1], sys.argv[2], choice=choice) for choice in (None, "onprem")]
        names = [sorted(set(generate(each).profiles.values())) for each in wanted]
        print(json.dumps([names, os.environ["TASKGRAPH_WORKERS_PROFILE"]]))
        """,
        EXAMPLE,
        PARAMS / "pull-request.yml",
        TASKGRAPH_WORKERS_PROFILE="lab",
    )
    assert names == [["gcp-spot"], ["onprem"]]
    assert still == "lab"


def test_the_choice_of_the_parameters_holds_unless_it_is_taken_away():
    """Parameters that choose a profile: as they say; another choice laid over; as if unsaid."""
    names = run(
        """
        def profiles(**more):
            graph = generate(Wanted(sys.argv[1], sys.argv[2], **more))
            return sorted(set(graph.profiles.values()))
        print(json.dumps([profiles(), profiles(choice="gcp-spot"), profiles(unsaid=True)]))
        """,
        EXAMPLE,
        PARAMS / "training-onprem.yml",
    )
    assert names == [["onprem"], ["gcp-spot"], ["gcp-standard"]]


@pytest.fixture
def shop(project: Project) -> Project:
    """Return a project of two tasks, whose kind has a transform to be written by the test."""
    project.config(WORKERS_CONFIG, register="shop_taskgraph:register")
    project.kind("train", {"a": {}, "b": {}}, transforms=["shop_taskgraph:transform"])
    return project


def transform(project: Project, body: str) -> None:
    """Write the project's module, with this body for its transform."""
    body = textwrap.indent(textwrap.dedent(body), "    ")
    head = "import taskgraph_workers\nregister = taskgraph_workers.register\n"
    text = f"{head}\ndef transform(config, tasks):\n{body}"
    project.write("taskcluster/shop_taskgraph.py", text)
    project.commit()


def test_two_graphs_of_one_moment(shop: Project):
    """A graph made `like` another has its very parameters, though time goes on."""
    transform(
        shop,
        """\
        for task in tasks:
            task["description"] = str(config.params["build_date"])
            yield task
        """,
    )
    stamps = run(
        """
        import time
        from itertools import count
        clock = count(1_800_000_000, 1000)
        time.time = lambda: next(clock)
        def stamps(graph):
            return [task["description"] for task in graph.tasks.values()]
        wanted = Wanted("taskcluster", overrides={"head_repository": sys.argv[1]})
        first = generate(wanted)
        print(json.dumps([stamps(g) for g in (first, generate(wanted, first), generate(wanted))]))
        """,
        REPOSITORY,
        cwd=shop.folder,
    )
    assert stamps[0] == stamps[1]
    assert stamps[0] != stamps[2]


FAILURE = """
    import traceback
    try:
        generate(Wanted("taskcluster", "params.yml", choice="onprem"))
    except WorkersError as error:
        cause = error.__cause__
        told = cause and traceback.format_exception(None, cause, cause.__traceback__)
        print(json.dumps([type(error).__name__, str(error), "".join(told or ())]))
"""


def test_an_error_of_the_project_is_told_with_its_cause(shop: Project):
    """What a transform raises is one line, and its traceback is at hand."""
    transform(shop, "raise KeyError('shoe-size')\nyield\n")
    name, text, told = run(FAILURE, cwd=shop.folder)
    assert (name, text) == ("GraphError", "KeyError: 'shoe-size'")
    assert "shop_taskgraph.py" in told


def test_a_project_that_ends_the_process_is_an_error(shop: Project):
    """`sys.exit` in a transform doesn't end us, however the kind is loaded."""
    transform(shop, "import sys\nsys.exit('no shoes')\nyield\n")
    name, text, _ = run(FAILURE, cwd=shop.folder)
    assert name == "GraphError"
    assert "no shoes" in text


def test_a_refusal_of_ours_is_its_message(shop: Project):
    """A task that can't be placed: each problem, and no cause to look for."""
    transform(shop, "for task in tasks:\n    yield {**task, 'worker': {'docker-image': 'a:1'}}\n")
    shop.config(
        """
        workers-config:
            profiles: {onprem: {workers: {b-gpu: {implementation: generic-worker}}}}
        """,
        register="shop_taskgraph:register",
    )
    name, text, told = run(FAILURE, cwd=shop.folder)
    assert (name, told) == ("GraphError", "")
    assert text.startswith("workers-config: 2 problems\n")
    assert "task train-a: generic-worker knows no worker field 'docker-image'" in text


def test_a_wrong_configuration_is_told_as_it_is(shop: Project):
    """A fault of workers-config comes with its place, whoever meets it first."""
    transform(shop, "return tasks\n")
    shop.config("workers-config:\n    profils: {}\n", register="shop_taskgraph:register")
    seen, met = run(
        """
        def error(make):
            try:
                make(Wanted("taskcluster", "params.yml"))
            except WorkersError as error:
                return str(error)
        print(json.dumps([error(check), error(generate)]))
        """,
        cwd=shop.folder,
    )
    assert met == f"workers-config: 1 problem\n{seen}"
    assert "config.yml:" in seen
    assert "did you mean 'profiles'?" in seen


def test_what_a_project_prints_is_no_data(shop: Project):
    """A transform's `print` goes to standard error, however the kind is loaded."""
    transform(shop, "print('hello from the shop')\nreturn tasks\n")
    labels = run(
        """
        print(json.dumps(sorted(generate(Wanted("taskcluster", "params.yml")).tasks)))
        """,
        cwd=shop.folder,
    )
    assert labels == ["train-a", "train-b"]


def test_the_target_graph_is_a_part(shop: Project):
    """`TARGET` leaves out what the parameters don't target."""
    transform(shop, "return tasks\n")
    shop.kind(
        "train",
        {"a": {"run-on-tasks-for": ["action"]}, "b": {"run-on-tasks-for": ["github-push"]}},
    )
    labels = run(
        """
        wanted = [Wanted("taskcluster", "params.yml", which=which) for which in (FULL, TARGET)]
        print(json.dumps([sorted(generate(each).tasks) for each in wanted]))
        """,
        cwd=shop.folder,
    )
    assert labels == [["train-a", "train-b"], ["train-b"]]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ('Wanted("taskcluster", choice="clowd", said_by="--profile")', "did you mean 'cloud'?"),
        ('Wanted("taskcluster", choice={"trian": "cloud"})', "did you mean 'train'?"),
        ('Wanted("taskcluster", "none.yml")', "none.yml: there is no such file"),
        ('Wanted("elsewhere")', "elsewhere"),
    ],
)
def test_what_can_be_seen_at_once_is_seen_at_once(shop: Project, wanted: str, said: str):
    """`check` refuses without making a graph, with a hint where there is one."""
    transform(shop, "raise AssertionError('a graph was made')\nyield\n")
    text = run(
        f"""
        try:
            check({wanted})
        except WorkersError as error:
            print(json.dumps(str(error)))
        """,
        cwd=shop.folder,
    )
    assert said in text


def test_a_choice_needs_something_to_choose_from(shop: Project):
    """Without a workers-config a profile can't be chosen, rather than changing nothing."""
    shop.config(None)
    text = run(
        """
        try:
            check(Wanted("taskcluster", choice="cloud"))
        except WorkersError as error:
            print(json.dumps(str(error)))
        """,
        cwd=shop.folder,
    )
    assert "there is no workers-config" in text
