"""One project with a task of every shape that placement has to live with."""

from __future__ import annotations

from typing import Any

from tests.graph.project import DOCKER, TASK, Project, docker

HARDWARE = {
    "provisioner": "shop-hardware",
    "implementation": "generic-worker",
    "worker-type": "{alias}",
}
SIGNING = {
    "provisioner": "scriptworker-k8s",
    "implementation": "scriptworker-shop",
    "os": "scriptworker",
    "worker-type": {"by-level": {"3": "shop-3-signing", "default": "shop-t-signing"}},
}
ALIASES: dict[str, Any] = {
    "b-cpu": DOCKER,
    "b-gpu": DOCKER,
    "b-device": DOCKER,
    "b-quiet": DOCKER,
    "b-mixed": DOCKER,
    "b-detect": DOCKER,
    "misc": DOCKER,
    "gw-linux": {**HARDWARE, "os": "linux"},
    "gw-macosx": {**HARDWARE, "os": "macosx"},
    "gw-windows": {**HARDWARE, "os": "windows"},
    "t-bitbar.*": {**HARDWARE, "os": "linux"},
    "signing": SIGNING,
    "odd name (1.0) ü": {**DOCKER, "worker-type": "odd"},
}
WORKERS_CONFIG: dict[str, Any] = {
    "workers": {
        "b-gpu": {"env": {"GPUS": "0", "WORKSPACE": "12000"}},
        "gw-.*": {"env": {"MACHINE": "metal"}},
        "t-bitbar-.*": {"env": {"DEVICE": "p2"}},
        "odd name .*": {"env": {"ODD": "yes"}},
        "b-mixed": {"env": {"MIXED": "no"}},
        "b-detect": {"env": {"GPUS": {"detect": "gpu-indices"}, "DIR": {"detect": "inherited"}}},
        "misc": {"env": {"TOLD": "1", "GPUS": {"detect": "gpu-indices"}}},
        # Said of what can't have it, and so never given.
        "signing": {"env": {"SECRET": "no"}},
        "succeed": {"env": {"NEVER": "no"}},
        "always-optimized": {"env": {"NEVER": "no"}},
    },
    "profiles": {
        "here": {"workers": {"new-name": "b-gpu"}},
        "away": {
            "extends": "here",
            "workers": {
                "b-gpu": "away-{level}/gpu",
                "b-device": {
                    "provisioner": "away",
                    "worker-type": "device",
                    "implementation": "generic-worker",
                    "env": {"GPUS": "0 1"},
                    "worker": {"docker-image": None},
                },
                "gw-linux": "away/fast-linux",
                "gw-macosx": "away/fast-macosx",
                "gw-windows": "away/fast-windows",
                "t-bitbar-.*": {"provisioner": "away-bitbar"},
                "signing": {
                    "worker-type": {"by-level": {"3": "away-3", "default": "away-t"}},
                    "env": {"SECRET": "no"},
                },
                "odd name .*": "away/odd",
                "misc": "away/misc",
                "succeed": "away/never",
                "always-optimized": "away/never",
            },
        },
    },
    "select": {"default": "here"},
    "require": [{"workers": "b-detect", "env": ["GPUS", "DIR"]}],
}
MODULE = '''
from voluptuous import Required

SEEN = ("b-device", "b-gpu", "b-quiet")


def register(graph_config):
    import taskgraph_workers

    register_plain(graph_config)
    taskgraph_workers.register(graph_config)


def register_plain(graph_config):
    from taskgraph.transforms.task import payload_builder

    @payload_builder("scriptworker-shop", schema={Required("products"): [str]})
    def build_payload(config, task, task_def):
        task_def["payload"] = {"products": task["worker"]["products"]}
        task_def["scopes"].append("shop:on:" + task["worker-type"])


def keyed(config, tasks):
    """A project resolves keyed worker types before `run`."""
    from taskgraph.util.schema import resolve_keyed_by

    for task in tasks:
        resolve_keyed_by(task, "worker-type", "a task", level=config.params["level"])
        yield task


def before(config, tasks):
    """A project compares names before `run`."""
    for task in tasks:
        assert task["worker-type"] in SEEN, task["worker-type"]
        yield task


def between(config, tasks):
    """A project compares names between `run` and `task`, or sets them."""
    for task in tasks:
        assert task["worker-type"] in SEEN, task["worker-type"]
        if task["label"].endswith("-set-later"):
            task["worker-type"] = "b-gpu"
        yield task


def own_implementation(config, tasks):
    """A project without `run` that says itself what runs its tasks."""
    for task in tasks:
        task["worker"].update({"implementation": "scriptworker-shop", "products": ["a"]})
        yield task


def raw(config, tasks):
    """A kind that writes its definitions itself."""
    for task in tasks:
        provisioner, _, worker_type = task["pool"].partition("/")
        definition = {
            "provisionerId": provisioner,
            "workerType": worker_type,
            "metadata": {"name": task["name"]},
            "payload": {"env": {"RAW": "1"}},
        }
        yield {
            "label": "raw-" + task["name"],
            "description": "Raw",
            "attributes": {},
            "dependencies": {},
            "task": definition,
        }
'''
BARE = "taskgraph.loader.transform:loader"
GENERIC = {"max-run-time": 600}


def write_shop(project: Project, workers_config: Any = WORKERS_CONFIG, **config: Any) -> Project:
    """Write the project, with all of its kinds."""
    project.config(workers_config, aliases=ALIASES, **{"register": "shop:register", **config})
    project.write("taskcluster/shop.py", MODULE)
    project.kind(
        "docker",
        {
            "plain": {"worker-type": "b-quiet"},
            "gpu": {},
            "own": {"worker": docker(env={"WORKSPACE": "9", "MINE": "1"})},
            "keyed": {"worker-type": {"by-level": {"1": "b-gpu", "default": "b-quiet"}}},
            "new": {"worker-type": "new-name"} if workers_config else {},
            "odd": {"worker-type": "odd name (1.0) ü"},
            "converted": {"worker-type": "b-device", "worker": docker(env={"MINE": "1"})},
            "detect": {"worker-type": "b-detect"},
            "optimized": {
                "worker-type": "always-optimized",
                "worker": None,
                "run": {"using": "always-optimized"},
                "run-on-projects": [],
            },
        },
        transforms=["shop:keyed"],
    )
    _write_generic(project)
    _write_without_run(project)
    project.kind(
        "compare",
        {
            "device": {"worker-type": "b-device", "run": TASK["run"]},
            "set-later": {"worker-type": "b-quiet", "run": TASK["run"]},
        },
        loader=BARE,
        transforms=[
            "shop:before",
            "taskgraph.transforms.run:transforms",
            "shop:between",
            "taskgraph.transforms.task:transforms",
        ],
    )
    _write_named(project, bool(workers_config))
    project.kind("routes", {"many": {"routes": [f"index.shop.v2.many.{n}" for n in range(70)]}})
    return project


def _write_named(project: Project, placed: bool) -> None:
    """A kind that names the transform, although it is reached by itself."""
    project.kind(
        "named",
        {
            "gpu": {},
            "converted": {"worker-type": "b-device", "worker": docker(env={"MINE": "1"})},
            "detect": {"worker-type": "b-detect"},
        },
        transforms=["taskgraph_workers.transforms:transforms"] if placed else [],
    )


def _write_generic(project: Project) -> None:
    linux = {"worker-type": "gw-linux", "worker": {**GENERIC, "os-groups": ["docker"]}}
    windows = {**GENERIC, "run-as-administrator": True, "env": {"MACHINE": "mine"}}
    project.kind(
        "generic",
        {
            "linux": linux,
            "macosx": {"worker-type": "gw-macosx", "worker": GENERIC},
            "windows": {"worker-type": "gw-windows", "worker": windows},
            "phone": {"worker-type": "t-bitbar-p2", "worker": GENERIC},
        },
    )


def _write_without_run(project: Project) -> None:
    products = {"products": ["a"]}
    project.kind(
        "task",
        {
            "signed": {"worker-type": "signing", "worker": products},
            "device": {"worker": docker(command=["true"])},
            "done": {"worker-type": "succeed", "worker": None},
        },
        loader=BARE,
        transforms=["taskgraph.transforms.task"],
    )
    project.kind(
        "own-implementation",
        {
            "same": {"worker-type": "signing", "worker": {}},
            "other": {"worker-type": "b-mixed", "worker": {}},
        },
        loader=BARE,
        transforms=["shop:own_implementation", "taskgraph.transforms.task:transforms"],
    )
    pools = {"moved": "shop-1/b-gpu", "elsewhere": "other/pool", "quiet": "shop-1/b-quiet"}
    project.kind(
        "raw",
        {name: {"pool": each} for name, each in pools.items()},
        loader=BARE,
        transforms=["shop:raw"],
    )
