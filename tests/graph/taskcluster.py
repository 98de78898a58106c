"""A stand-in for what Taskgraph asks of Taskcluster: parameters, scopes, and to create tasks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from typing import Any

import yaml

#: Where an artifact is, is said apart from its content; older Taskgraphs look at the content alone.
SAYS_WHERE = int(version("taskcluster-taskgraph").split(".")[0]) > 18

SCOPE = "assume:repo:github.com/example/shop:action:generic"


class Deployment:
    """What was created, by task id, and the parameters that an action is given."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.parameters = parameters
        self.created: dict[str, dict[str, Any]] = {}
        self.url = ""

    @property
    def pools(self) -> dict[str, str]:
        """Where each created task runs, by its name."""
        return {
            task["metadata"]["name"]: f"{task['provisionerId']}/{task['workerType']}"
            for task in self.created.values()
        }

    @property
    def env(self) -> dict[str, str]:
        """The environment of a decision or action task."""
        return {
            "TASK_ID": "decisionQSGmFn1vYuB1QA",
            "RUN_ID": "0",
            "TASKCLUSTER_ROOT_URL": self.url,
            "TASKCLUSTER_PROXY_URL": self.url,
        }


@contextmanager
def deployment(parameters: dict[str, Any]) -> Iterator[Deployment]:
    """Serve a deployment on this machine."""
    held = Deployment(parameters)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/scopes/current"):
                said = json.dumps(
                    {"scopes": ["assume:repo:github.com/example/shop:action:generic"]}
                )
            elif self.path.endswith("parameters.yml") and SAYS_WHERE:
                said = json.dumps({"url": f"{held.url}/the-file"})
            elif self.path.endswith(("parameters.yml", "/the-file")):
                said = yaml.safe_dump(held.parameters)
            else:
                said = json.dumps({"tasks": []})
            self.answer(said)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            held.created[self.path.rsplit("/", 1)[-1]] = json.loads(body)
            self.answer("{}")

        def answer(self, said: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said.encode())))
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
