"""A runner that knows the three kinds of the seed and nothing else. Standard library only.

    plain_runner.py SOCKET

Serves what the configuration declares for its role: `read` gives the path's name back, anything else fails.
Ends well when the broker hangs up.
"""

import json
import socket
import struct
import sys


def receive(stream):
    head = stream.read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack(">I", head)
    envelope = json.loads(stream.read(length))
    assert set(envelope) == {"v", "id", "final", "msg"} and envelope["v"] == 1, envelope
    assert envelope["final"] and envelope["id"] > 0, envelope
    assert envelope["msg"]["kind"] == "tool_request", envelope
    request = envelope["msg"]["body"]
    assert list(request) == ["session", "call", "tool", "arguments"], request
    return envelope["id"], request


def run(request):
    if request["tool"] != "read":
        return {"status": "failed", "message": "this runner cannot " + request["tool"]}
    path = json.loads(request["arguments"])["path"]
    content = f"content of {path} \u2603"
    return {"status": "result", "content": content, "class": "internal", "untrusted": False, "truncated": False}


def main(path):
    broker = socket.socket(socket.AF_UNIX)
    broker.connect(path)
    stream = broker.makefile("rb")
    while (received := receive(stream)) is not None:
        id, request = received
        envelope = {"final": True, "id": id, "msg": {"body": run(request), "kind": "tool_response"}, "v": 1}
        frame = json.dumps(envelope).encode()  # escapes and an order of keys of its own
        broker.sendall(struct.pack(">I", len(frame)) + frame)


main(*sys.argv[1:])
