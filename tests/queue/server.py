"""A small Taskcluster on this machine: Queue, artifacts, index, and the scopes of whoever asks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from tests.queue.rules import ROOT, Queue, Refusal

Answer = tuple[int, Any]


@dataclass
class Taskcluster:
    """What the server knows. `scopes` are those of whoever comes through the proxy."""

    queue: Queue = field(default_factory=Queue)
    scopes: tuple[str, ...] = ROOT
    artifacts: dict[tuple[str, str], bytes] = field(default_factory=dict)
    index: dict[str, str] = field(default_factory=dict)
    # A Queue says where an artifact is. Taskgraph 18 took what it says for the artifact itself.
    redirects: bool = True
    #: Each createTask that came, with what was answered.
    created: list[tuple[str, Any, int]] = field(default_factory=list)
    url: str = ""

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The definitions that came and were taken, by the name of the task."""
        return {each["metadata"]["name"]: each for _, each, code in self.created if code == 200}

    def put(self, parts: list[str], body: Any) -> Answer:
        """Answer a PUT."""
        if parts[:3] != ["queue", "v1", "task"]:
            return _not_found()
        code = 200
        try:
            return code, {"status": self.queue.create(parts[3], body, self.scopes)}
        except Refusal as refusal:
            code = refusal.status
            raise
        finally:
            self.created.append((parts[3], body, code))

    def get(self, parts: list[str]) -> Answer:
        """Answer a GET."""
        service, what, rest = parts[0], parts[2:3], parts[3:]
        if service == "auth":
            return 200, {"scopes": list(self.scopes)}
        if service == "index" and what == ["task"]:
            return self._indexed(rest[0])
        if service == "index":
            return self._listed(rest[0])
        if service == "content" or (what == ["task"] and rest[1:2] == ["artifacts"]):
            return self._artifact(service, parts)
        if service == "queue" and what == ["task"]:
            status = rest[1:] == ["status"]
            found = self.queue.status(rest[0]) if status else self.queue.task(rest[0])
            return 200, {"status": found} if status else found
        if service == "queue" and what == ["task-group"]:
            return 200, self._group(rest[0])
        return _not_found()

    def post(self, parts: list[str], body: Any) -> Answer:
        """Answer a POST: the batches that Taskgraph asks for."""
        if parts[0] == "index" and parts[2:] != ["tasks", "indexes"]:
            return self._listed(parts[3])
        if parts[0] == "index":
            wanted = (body or {}).get("indexes", ())
            found = [each for each in wanted if each in self.index]
            return 200, {
                "tasks": [{"namespace": each, "taskId": self.index[each]} for each in found]
            }
        known = [each for each in body["taskIds"] if each in self.queue.tasks]
        if parts[2:] == ["tasks"]:
            return 200, {
                "tasks": [{"taskId": each, "task": self.queue.task(each)} for each in known]
            }
        return 200, {
            "statuses": [{"taskId": each, "status": self.queue.status(each)} for each in known]
        }

    def _indexed(self, path: str) -> Answer:
        if path not in self.index:
            raise Refusal(404, "ResourceNotFound", f"Indexed task not found: {path}")
        return 200, {"namespace": path, "taskId": self.index[path]}

    def _listed(self, namespace: str) -> Answer:
        found = [path for path in self.index if path.rpartition(".")[0] == namespace]
        expires = "2038-01-01T00:00:00.000Z"
        tasks = [{"namespace": path, "taskId": self.index[path]} for path in found]
        return 200, {"tasks": [{**each, "expires": expires} for each in tasks]}

    def _artifact(self, service: str, parts: list[str]) -> Answer:
        task_id, name = (parts[1], parts[2:]) if service == "content" else (parts[3], parts[5:])
        content = self.artifacts.get((task_id, "/".join(name)))
        if content is None:
            raise Refusal(404, "ResourceNotFound", "Artifact not found")
        if service == "content" or not self.redirects:
            return 200, content
        url = f"{self.url}/content/{task_id}/{'/'.join(name)}"
        return 303, {"storageType": "s3", "url": url}

    def _group(self, group_id: str) -> dict[str, Any]:
        group = self.queue.group(group_id)
        tasks = [
            {"status": self.queue.status(each), "task": self.queue.task(each)}
            for each in group.tasks
        ]
        return {"taskGroupId": group_id, "schedulerId": group.scheduler_id, "tasks": tasks}


def _not_found() -> Answer:
    return 404, {"error": "Not found"}


@contextmanager
def taskcluster(**more: Any) -> Iterator[Taskcluster]:
    """Serve one, as a rootUrl and as the proxy inside a task, until the end of the block."""
    held = Taskcluster(**more)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(held))
    server.daemon_threads = True
    held.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()


def _handler(held: Taskcluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(lambda parts, _: held.get(parts))

        def do_PUT(self) -> None:
            self.answer(held.put)

        def do_POST(self) -> None:
            self.answer(held.post)

        def answer(self, ask: Any) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = unquote(self.path.split("?")[0]).strip("/").split("/")
            # Through the proxy, /api may be left out.
            parts = parts[1:] if parts[0] == "api" else parts
            try:
                code, said = ask(parts, json.loads(content) if content else None)
            except Refusal as refusal:
                code, said = refusal.status, {"code": refusal.code, "message": refusal.message}
            body = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(code)
            if code == 303:
                self.send_header("Location", said["url"])
            if not isinstance(said, bytes):
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
