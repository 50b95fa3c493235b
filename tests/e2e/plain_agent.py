"""An agent that knows the three kinds of the seed and nothing else. Standard library only.

    plain_agent.py SOCKET SESSION CALL TOOL ARGUMENTS [CALL TOOL ARGUMENTS ...]

All calls are in flight at once. For each, in the order of the command line, one line: the final answer's
body. Exits 1 when the broker says anything that the seed does not.
"""

import json
import socket
import struct
import sys

FIELDS = {
    "pending_approval": {"status", "approval", "expires"},
    "result": {"status", "content", "class", "untrusted", "truncated"},
    "failed": {"status", "message"},
    "denied": {"status", "reason"},
}


def receive(stream):
    head = stream.read(4)
    if len(head) < 4:
        sys.exit("the broker hung up")
    (length,) = struct.unpack(">I", head)
    envelope = json.loads(stream.read(length))
    assert set(envelope) == {"v", "id", "final", "msg"} and envelope["v"] == 1, envelope
    assert set(envelope["msg"]) == {"kind", "body"}, envelope
    body = envelope["msg"]["body"]
    if envelope["msg"]["kind"] == "error":
        assert set(body) == {"code", "detail"} and envelope["final"], envelope
    else:
        assert envelope["msg"]["kind"] == "tool_response", envelope
        assert set(body) == FIELDS[body["status"]], envelope
        assert envelope["final"] == (body["status"] != "pending_approval"), envelope
    return envelope["id"], envelope["final"], body


def main(path, session, *calls):
    broker = socket.socket(socket.AF_UNIX)
    broker.connect(path)
    count = len(calls) // 3
    for id in range(1, count + 1):
        call, tool, arguments = calls[3 * id - 3 : 3 * id]
        body = {"session": session, "call": int(call), "tool": tool, "arguments": arguments}
        envelope = {"v": 1, "id": id, "final": True, "msg": {"kind": "tool_request", "body": body}}
        frame = json.dumps(envelope).encode()  # with spaces: any JSON of the same value is good
        broker.sendall(struct.pack(">I", len(frame)) + frame)
    answers, stream = {}, broker.makefile("rb")
    while len(answers) < count:
        id, final, body = receive(stream)
        assert 1 <= id <= count and id not in answers, id
        if final:
            answers[id] = body
        else:
            print(json.dumps(body), file=sys.stderr, flush=True)
    for id in sorted(answers):
        print(json.dumps(answers[id]))


main(*sys.argv[1:])
