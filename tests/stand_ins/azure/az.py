"""A stand-in for Azure: `az vm`, the metadata service by `curl`, and `docker` in a machine.

``az.py PROGRAM WORDS...``. Machines are folders in $AZURE; each runs its custom data once. Options
are those of the real client (azure-cli, command_modules/vm and resource, _params.py); others are
refused. A machine that is made without waiting is not there yet.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(os.environ["AZURE"])
#: Options that take values, by command; those of GLOBAL belong to all of them.
GLOBAL = {"--output", "--query"}
VALUED = {
    "vm create": {
        *("--resource-group", "--name", "--image", "--size", "--assign-identity", "--custom-data"),
        *("--user-data", "--tags", "--public-ip-address", "--nsg", "--os-disk-delete-option"),
        *("--nic-delete-option", "--vnet-name", "--subnet"),
    },
    "vm list": {"--resource-group"},
    "vm delete": {"--resource-group", "--name", "--ids"},
    "tag update": {"--resource-id", "--operation", "--tags"},
}
FLAGS = {"--no-wait", "--only-show-errors", "--generate-ssh-keys", "--yes"}
POLL = (
    r"\[\?name=='([^']*)'\]\.\{phase: \(provisioningState=='Failed' && tags\.phase=='queued' &&"
    r" 'failed'\) \|\| tags\.phase, exit_code: tags\.exit_code, machine: vmId\}"
    r" \| \[0\] \|\| \{phase: 'lost'\}"
)
GROUP = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines"


def fail(text: str, code: int) -> None:
    print(f"ERROR: {text}", file=sys.stderr)
    sys.exit(code)


def parsed(command: str, words: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    while words:
        name = words.pop(0)
        if name not in VALUED[command] | GLOBAL | FLAGS:
            fail(f"unrecognized arguments: {name}", 2)
        found[name] = []
        while name not in FLAGS and words and not words[0].startswith("--"):
            found[name].append(words.pop(0))
    return found


def machine(id: str) -> Path:
    group, _, name = id.rpartition("/")
    assert group == GROUP
    if not (HOME / name / "vm.json").exists():
        fail(f"(ResourceNotFound) {name} was not found", 3)
    return HOME / name


def create(said: dict[str, list[str]]) -> None:
    name = said["--name"][0]
    try:
        (HOME / name).mkdir()
    except FileExistsError:
        fail(f"Resource '{name}' already exists", 1)
    (HOME / name / "argv").write_text(json.dumps(sys.argv[1:]))
    user = Path(said["--user-data"][0])
    content = user.read_bytes() if user.exists() else user.name.encode()
    (HOME / name / "userData").write_text(base64.b64encode(content).decode())
    value = {"name": name, "id": f"{GROUP}/{name}", "vmId": f"id-of-{name}"}
    state = "Failed" if (HOME / "full").exists() else "Succeeded"
    if "--no-wait" in said:
        # First comes the machine's network: nobody sees a machine yet.
        return
    write(HOME / name, {**value, "tags": tags(said), "provisioningState": state})
    if state == "Failed":
        fail("(AllocationFailed) We do not have sufficient capacity for the size", 1)
    if (HOME / "no-boot").exists():
        return
    script = HOME / name / "custom-data.sh"
    shutil.copy(said["--custom-data"][0], script)
    inside = {"PATH": os.environ["PATH"], "AZURE": str(HOME), "VM": name, "RETRY_S": "0.05"}
    process = subprocess.Popen(
        ["sh", str(script)],
        env={**inside, "VARIABLES": str(HOME / name / "variables")},
        stdout=subprocess.DEVNULL,
        stderr=(HOME / name / "log").open("w"),
        start_new_session=True,
    )
    (HOME / name / "pid").write_text(str(process.pid))


def tags(said: dict[str, list[str]]) -> dict[str, str]:
    return dict(tag.split("=", 1) for tag in said["--tags"])


def write(of: Path, value: object) -> None:
    (of / "new").write_text(json.dumps(value))
    (of / "new").rename(of / "vm.json")


def show(said: dict[str, list[str]]) -> None:
    there = [json.loads(each.read_text()) for each in HOME.glob("tw-*/vm.json")]
    query = said["--query"][0]
    poll = re.fullmatch(POLL, query)
    name = (poll or re.fullmatch(r"\[\?name=='([^']*)'\]\.id", query))[1]  # type: ignore[index]
    found = [each for each in there if each["name"] == name]
    if not poll:
        print("\n".join(each["id"] for each in found))
    elif not found:
        print(json.dumps({"phase": "lost"}))
    else:
        vm, told = found[0], found[0]["tags"]
        failed = vm["provisioningState"] == "Failed" and told["phase"] == "queued"
        phase = "failed" if failed else told["phase"]
        asked = {"phase": phase, "exit_code": told.get("exit_code"), "machine": vm["vmId"]}
        print(json.dumps(asked))


def update(said: dict[str, list[str]]) -> None:
    assert said["--operation"] == ["Merge"]
    of = machine(said["--resource-id"][0])
    value = json.loads((of / "vm.json").read_text())
    value["tags"].update(tags(said))
    write(of, value)


def delete(said: dict[str, list[str]]) -> None:
    of = machine(said["--ids"][0])
    if (of / "pid").exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((of / "pid").read_text()), signal.SIGKILL)
    if (HOME / "slow").exists():
        return
    of.rename(HOME / f".gone-{of.name}")


def az(words: list[str]) -> None:
    if (HOME / "expired").exists():
        fail("AADSTS700082: the refresh token has expired. Please run: az login", 1)
    if words[0] == "login":
        assert words[1:] == ["--identity", "--output", "none"]
        return
    command = " ".join(words[:2])
    said = parsed(command, words[2:])
    acts = {"vm create": create, "vm list": show, "vm delete": delete, "tag update": update}
    acts[command](said)


def curl(words: list[str]) -> None:
    assert words[:3] == ["-sf", "-H", "Metadata:true"]
    what = re.fullmatch(
        r".*/metadata/instance/compute/(\w+)\?api-version=[\d-]+&format=text", words[3]
    )
    assert what is not None
    vm = HOME / os.environ["VM"]
    id = f"{GROUP}/{vm.name}"
    print(id if what[1] == "resourceId" else (vm / what[1]).read_text(), end="")


def docker(words: list[str]) -> None:
    vm = HOME / os.environ["VM"]
    names = [words[at + 1] for at, word in enumerate(words) if word == "--env"]
    told = {"argv": words, "env": {name: os.environ[name] for name in names}}
    (vm / "docker").write_text(json.dumps(told))
    while not (HOME / "go").exists():
        time.sleep(0.02)
    sys.exit(int((HOME / "go").read_text()))


{"az": az, "curl": curl, "docker": docker}[sys.argv[1]](sys.argv[2:])
