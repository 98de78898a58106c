"""A stand-in for podman and docker: containers that outlive the client which started them.

``engine.py NAME WORDS...``. A container is a folder in $STAND_IN; its process runs $STAND_IN/image,
with just the variables that it was given. Options that are none of the real ones are refused.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(os.environ["STAND_IN"])
NAME = sys.argv[1]
#: Options of `run` that take a value, as `podman run --help` and `docker run --help` have them.
VALUED = {"--name", "--cidfile", "--pull", "--label", "--volume", "--env", "--env-file"}
VALUED |= {"--shm-size"}
VALUED |= {"--gpus"} if NAME == "docker" else {"--device"}


def box(name: str) -> Path:
    return HOME / "containers" / name


def info() -> int:
    if (HOME / "down").exists():
        print(f"Cannot connect to the {NAME} daemon. Is it running?", file=sys.stderr)
        return 1
    print("99.0")
    return 0


def parsed(words: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    options: dict[str, list[str]] = {}
    while words and words[0].startswith("-"):
        if words[0] not in VALUED:
            print(f"unknown flag: {words[0]}", file=sys.stderr)
            sys.exit(125)
        options.setdefault(words[0], []).append(words[1])
        words = words[2:]
    return options, words


def run(words: list[str]) -> int:
    options, image = parsed(words)
    made = box(options["--name"][0])
    if (HOME / "pulling").exists():
        (HOME / "pulling").write_text(str(os.getpid()))
        while (HOME / "pulling").exists():
            time.sleep(0.02)
    if (HOME / "reserved").exists():
        print("the container name is already in use", file=sys.stderr)
        return 125
    if (HOME / "outage").exists():
        with (HOME / "tries").open("a") as tries:
            tries.write(f"{time.monotonic()}\n")
        print((HOME / "outage").read_text(), file=sys.stderr)
        return 125
    try:
        made.mkdir(parents=True)
    except FileExistsError:
        print("the container name is already in use", file=sys.stderr)
        return 125
    (made / "argv").write_text(json.dumps(sys.argv[2:]))
    Path(options["--cidfile"][0]).write_text("0123456789ab")
    if not (HOME / "image").exists():
        (made / "status").write_text("created 0")
        with (HOME / "refused").open("a") as refused:
            refused.write("x")
        print("OCI runtime error", file=sys.stderr)
        return 126
    env = {n: os.environ[n] for n in options.get("--env", []) if n in os.environ}
    for file in options.get("--env-file", []):
        env.update(line.split("=", 1) for line in Path(file).read_text().splitlines())
    source, inside, _ = options["--volume"][0].split(":")
    env = {name: value.replace(inside, source) for name, value in env.items()}
    (made / "env").write_text(json.dumps({**env, "image": image[0]}))
    (made / "status").write_text("running 0")
    # The engine's own process, not the client's: a session of its own, none of the client's env.
    shell = f'sh {HOME / "image"}; echo "exited $?" > {made}/new; mv {made}/new {made}/status'
    path = os.environ["PATH"]
    process = subprocess.Popen(
        ["sh", "-c", shell], env={"PATH": path, **env}, start_new_session=True
    )
    (made / "pid").write_text(str(process.pid))
    return wait(made)


def status(made: Path) -> tuple[str, int]:
    words = (made / "status").read_text().split()
    return words[0], int(words[1])


def wait(made: Path) -> int:
    while status(made)[0] == "running":
        time.sleep(0.01)
    return status(made)[1]


def kill(made: Path, number: int) -> None:
    if status(made)[0] == "running":
        session = (made / "pid").read_text()
        for pid in subprocess.run(
            ["pgrep", "-s", session], capture_output=True, text=True, check=False
        ).stdout.split():
            if number == signal.SIGKILL or pid != session:
                os.kill(int(pid), number)
        if number == signal.SIGKILL:
            (made / "status").write_text("exited 137")


def stop(made: Path, seconds: float) -> int:
    kill(made, signal.SIGTERM)
    until = time.monotonic() + seconds
    while status(made)[0] == "running":
        if time.monotonic() > until:
            kill(made, signal.SIGKILL)
        time.sleep(0.01)
    return 0


def remove(made: Path) -> int:
    (HOME / "reserved").unlink(missing_ok=True)
    if made.exists():
        kill(made, signal.SIGKILL)
        shutil.rmtree(made)
    return 0


def inspected(made: Path) -> int:
    if not made.exists():
        return 1
    garbage = HOME / "garbage"
    print(garbage.read_text() if garbage.exists() else " ".join(map(str, status(made))))
    return 0


def listed(made: Path, how: str) -> int:
    if (HOME / "forsaken").exists():
        print("no such exit code (container in state running)", file=sys.stderr)
        return 125
    print(wait(made) if how == "wait" else "PID 1")
    return 0


def main(words: list[str]) -> int:
    if info() if words[0] == "info" else (HOME / "down").exists():
        return 1
    if words[0] == "run":
        return run(words[1:])
    made = box(words[-1].rsplit("=")[-1])
    if words[0] == "ps":
        assert words[1:4] == ["--all", "--quiet", "--filter"]
        print("0123456789ab" if made.exists() else "")
    elif words[0] == "inspect":
        assert words[1:4] == ["--type", "container", "--format"]
        return inspected(made)
    elif words[0] in ("wait", "top"):
        return listed(made, words[0])
    elif words[0] == "stop":
        assert words[1] == "-t"
        return stop(made, float(words[2]))
    elif words[0] == "rm":
        force = words[1] == "--force"
        assert words[1 + force] == "--volumes"
        if made.exists() and not force and status(made)[0] == "running":
            return 2
        return remove(made)
    return 0


sys.exit(main(sys.argv[2:]))
