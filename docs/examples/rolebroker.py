"""rolebroker in one file: an agent that calls, a runner that serves, an approver that answers.

Standard library only. As a module: `Broker(path)` and its methods. As a command:

    python3 rolebroker.py call SOCKET SESSION CALL TOOL ARGUMENTS
    python3 rolebroker.py serve SOCKET [TOOL]        # the tool gives its arguments back
    python3 rolebroker.py approvals SOCKET
    python3 rolebroker.py approve SOCKET APPROVAL [COMMENT]

Exit codes of a call: 0 result, 3 denied, 4 failed; anything else that went wrong is 1, wrong usage 64.
"""

import itertools
import json
import queue
import socket
import struct
import sys
import threading

MAX_FRAME = 64 << 20  # what a broker may take at most; the welcome says what this one takes
CLASSES = ["public", "internal", "confidential", "secret"]


class BrokerError(Exception):
    """The broker did not take a request, or went away."""


class ToolFailure(Exception):
    """Raised by a handler: the tool gave nothing. The agent reads the text: no secrets in it."""


class Broker:
    """One connection to one role's socket. Any number of requests may be in flight, from any threads."""

    def __init__(self, path, software="rolebroker.py"):
        self._ids = itertools.count(1)
        self._lock = threading.Lock()  # over the socket's writing side and _open
        self._open = {}  # id -> queue of (final, message); None ends it
        self._lost = None
        self.pushes = queue.Queue()  # what comes unasked, and a runner's requests: (id, message); None ends it
        self.max_frame = MAX_FRAME
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except OSError as error:
            raise BrokerError(f"cannot connect to {path}: {error}; is rolebrokerd running?") from error
        threading.Thread(target=self._read, daemon=True).start()
        features = ["parts", "progress", "tools"]
        try:
            [self.welcome] = self.ask("hello", {"software": software, "features": features})
        except BrokerError as error:
            raise BrokerError(f"{path}: {error}; does the role's `users` name this user?") from error
        self.max_frame = self.welcome["max_frame"]

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the reader; close alone would not
        except OSError:
            pass  # the broker was first
        self._socket.close()

    # --- requests -------------------------------------------------------------------------------------------

    def ask(self, kind, body):
        """Sends a request and gives the bodies of all its replies."""
        return list(self._replies(kind, body))

    def call(self, session, call, tool, arguments, on_step=lambda step: None):
        """Calls a tool and gives the last response, the parts of its content joined. The same session and
        number again give the stored answer. `on_step` hears of progress and of a pending approval."""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        body = {"session": session, "call": call, "tool": tool, "arguments": arguments}
        return self._outcome("tool_request", body, on_step)

    def cancel(self, session, call):
        """Ends a call; gives how it ended, like a repeat of it."""
        return self._outcome("cancel", {"session": session, "call": call})

    def _outcome(self, kind, body, on_step=lambda step: None):
        content, rank, untrusted = "", 0, False
        for step in self._replies(kind, body):
            if step.get("status") == "result":
                content += step["content"]
                rank = max(rank, CLASSES.index(step["class"]))
                untrusted = untrusted or step["untrusted"]
            elif step.get("status") in ("denied", "failed"):
                return step
            else:
                on_step(step)
        return step | {"content": content, "class": CLASSES[rank], "untrusted": untrusted}

    # --- a runner -------------------------------------------------------------------------------------------

    def serve(self, handler):
        """Serves until the broker goes away: `handler(request, cancelled)` gives (content, class, untrusted) or
        raises ToolFailure. `request` is the body of a `tool_request`, `cancelled` a threading.Event."""
        running = {}
        while (pushed := self.pushes.get()) is not None:
            id, message = pushed
            if message["kind"] == "tool_request":
                cancelled = running[id] = threading.Event()
                run = (id, message["body"], cancelled, handler, running)
                threading.Thread(target=self._run, args=run, daemon=True).start()
            elif message["kind"] == "cancel" and id in running:
                running[id].set()

    def _run(self, id, request, cancelled, handler, running):
        try:
            content, data_class, untrusted = handler(request, cancelled)
            body = {"status": "result", "content": content, "class": data_class, "untrusted": untrusted}
            body["truncated"] = False
        except ToolFailure as failure:
            body = {"status": "failed", "message": str(failure)}
        except Exception as error:  # whatever it is, the call must end; its text could hold a secret
            body = {"status": "failed", "message": f"the tool broke off ({type(error).__name__})"}
        running.pop(id, None)
        try:
            self._send(id, "tool_response", body)
        except ValueError:
            self._send(id, "tool_response", {"status": "failed", "message": "the answer is too large"})
        except OSError:
            pass  # the broker has gone

    # --- an approver ----------------------------------------------------------------------------------------

    def approvals(self, settled=False):
        """What waits for this approver, oldest first: bodies of `approval_request`."""
        replies = self.ask("list_approvals", {"settled": settled})
        return [request for reply in replies for request in reply["pending"]]

    def answer(self, request, answer="approve", scope="once", comment=""):
        """Answers exactly what `request` showed: its digest goes along. Gives what became of it."""
        body = {"approval": request["approval"], "digest": request["digest"], "answer": answer}
        return self.ask("approval_reply", body | {"scope": scope, "comment": comment})[-1]

    # --- the wire -------------------------------------------------------------------------------------------

    def _replies(self, kind, body):
        id, replies = next(self._ids), queue.Queue()
        with self._lock:
            if self._lost is not None:
                raise BrokerError(self._lost)
            self._open[id] = replies
        try:
            self._send(id, kind, body)
            final = False
            while not final:
                reply = replies.get()
                if reply is None:
                    raise BrokerError(self._lost)
                final, message = reply
                if message["kind"] == "error":
                    raise BrokerError("{code}: {detail}".format(**message["body"]))
                yield message["body"]
        except (OSError, ValueError) as error:
            raise BrokerError(f"the request was not sent: {error}") from error
        finally:
            with self._lock:
                self._open.pop(id, None)

    def _send(self, id, kind, body):
        envelope = {"v": 1, "id": id, "final": True, "msg": {"kind": kind, "body": body}}
        # This is how the broker itself writes it: no spaces, and only what must be is escaped.
        frame = json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode()
        if len(frame) > self.max_frame:
            raise ValueError(f"{len(frame)} bytes do not fit a frame of {self.max_frame}")
        with self._lock:
            self._socket.sendall(struct.pack(">I", len(frame)) + frame)

    def _read(self):
        lost = "the broker hung up"
        try:
            stream = self._socket.makefile("rb")
            while len(head := stream.read(4)) == 4:
                [length] = struct.unpack(">I", head)
                if not 0 < length <= self.max_frame:
                    raise ValueError("a frame out of bounds")
                envelope = json.loads(stream.read(length))
                id, message = envelope["id"], envelope["msg"]
                if id == 0 and message["kind"] == "error":
                    raise ValueError("{code}: {detail}".format(**message["body"]))
                if id == 0 or message["kind"] in ("tool_request", "cancel"):
                    self.pushes.put((id, message))
                    continue
                with self._lock:
                    waiting = self._open.get(id)
                if waiting is not None:  # else nobody waits for it any more
                    waiting.put((envelope["final"], message))
        except (OSError, ValueError, KeyError) as error:
            lost = f"the connection broke: {error}"
        with self._lock:
            self._lost = lost
            for waiting in self._open.values():
                waiting.put(None)
        self.pushes.put(None)


def main(args):
    match args:
        case ["call", path, session, call, tool, arguments]:
            def show(step):
                print(json.dumps(step), file=sys.stderr)

            answer = Broker(path).call(session, int(call), tool, arguments, show)
            print(json.dumps(answer))
            return {"result": 0, "denied": 3}.get(answer["status"], 4)
        case ["serve", path, *tools]:
            def give_back(request, cancelled):
                if tools and request["tool"] not in tools:
                    raise ToolFailure("there is no such tool here")
                return request["arguments"], "public", False

            Broker(path).serve(give_back)
        case ["approvals", path]:
            for request in Broker(path).approvals():
                print(json.dumps(request))  # escapes whatever is not ASCII
        case ["approve", path, approval, *comment]:
            broker = Broker(path)
            for request in broker.approvals():
                if request["approval"] == approval:
                    print(json.dumps(request))
                    print(json.dumps(broker.answer(request, comment=" ".join(comment))))
                    return 0
            print(f"no approval {approval} waits here", file=sys.stderr)
            return 1
        case _:
            print(__doc__, file=sys.stderr)
            return 64
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokerError as error:
        sys.exit(f"rolebroker.py: {error}")
