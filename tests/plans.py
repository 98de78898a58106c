"""Plans as `plan --json` has them, made up."""

from __future__ import annotations

from typing import Any

SPOT, ONPREM = "proj-1/gpu", "proj-onprem/big"

#: A text that wants to be more than text.
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&amp;<!--{{data}}\u202e\x00"

KINDS = [f"{name}-{n}" for name in ("train", "score", "clean", "align") for n in range(10)]


def move(label: str, **more: Any) -> dict[str, Any]:
    """A move; what is not said of it is usual."""
    before = {"pool": SPOT, "implementation": "docker-worker"}
    after = {"pool": ONPREM, "implementation": "docker-worker"}
    usual = {"kind": "train", "from": before, "to": after, "env": {}, "other": {}}
    return {"label": label, **usual, **more}


def plan(*moves: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A plan; what is not said of it is empty."""
    empty: dict[str, Any] = {
        name: [] for name in ("added", "removed", "new_pools", "scopes", "new_scopes")
    }
    usual = {"from": "spot", "to": "onprem", "moves": list(moves), "unchanged": 0}
    return {"version": 1, **empty, **usual, **more}


def hostile() -> dict[str, Any]:
    """A plan with every value hostile."""
    where = {"pool": HOSTILE, "implementation": HOSTILE}
    other = {"pool": HOSTILE + "2", "implementation": None}
    told = {HOSTILE: [HOSTILE, {"task-reference": HOSTILE}], "D": [None, {"detect": HOSTILE}]}
    sides = {"from": where, "to": other}
    one = move(HOSTILE, kind=HOSTILE, env=told, other={HOSTILE: [[HOSTILE], {HOSTILE: 1}]})
    return plan(
        {**one, **sides},
        move(HOSTILE + "3", kind=HOSTILE, **sides),
        added=[HOSTILE],
        removed=[HOSTILE],
        new_pools=[HOSTILE + "2"],
        scopes=[HOSTILE],
        new_scopes=[HOSTILE],
        **{"from": {HOSTILE: HOSTILE, "b": None}, "to": HOSTILE},
    )


def many(count: int) -> dict[str, Any]:
    """A plan of so many tasks, of 40 kinds; each 8th kind changes where it is."""
    moves = []
    for at in range(count):
        kind = KINDS[at % len(KINDS)]
        env: dict[str, Any] = {"WORKSPACE": ["12000", {"detect": "gpu-memory", "share": 0.75}]}
        if at % 3 == 0:
            env = {"GPUS": ["0", "0 1"]}
        command = [["bash", "-cx", f"run {at}"], [["bash", "-c", f"run {at}"]]]
        one = move(f"{kind}-en-{at:05}", kind=kind, env=env, other={"payload.command": command})
        moves.append({**one, "to": one["from"]} if KINDS.index(kind) % 8 == 0 else one)
    pool = f"queue:create-task:low:{ONPREM}"
    routes = [f"queue:route:index.proj.{kind}" for kind in KINDS]
    return plan(
        *sorted(moves, key=lambda each: str(each["label"])),
        unchanged=1234,
        new_pools=[ONPREM],
        scopes=[pool, *routes],
        new_scopes=[pool],
    )
