"""A small reverse proxy, as a JupyterHub has one before its servers: it knows one prefix, and hands
on requests and websockets below it. Whatever is asked elsewhere it answers with 404."""

import asyncio
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

from tornado import httpclient, httpserver, netutil, web, websocket

# headers that belong to one connection, not to the answer
OF_ONE_CONNECTION = {"Connection", "Content-Length", "Content-Encoding", "Transfer-Encoding"}


class HandOn(web.RequestHandler):
    """A request to the server behind, and its answer back."""

    def initialize(self, behind: str):
        self.behind = behind

    async def prepare(self):
        request = self.request
        answer = await httpclient.AsyncHTTPClient().fetch(
            self.behind + request.uri,
            method=request.method,
            headers=request.headers,
            body=request.body or None,
            allow_nonstandard_methods=True,
            follow_redirects=False,
            request_timeout=60,
            raise_error=False,
        )
        self.set_status(answer.code, answer.reason)
        self.clear_header("Content-Type")
        for name, value in answer.headers.get_all():
            if name not in OF_ONE_CONNECTION:
                self.add_header(name, value)
        await self.finish(answer.body or None)


class HandOnMessages(websocket.WebSocketHandler):
    """A websocket to the server behind: what comes from one side goes to the other, in order."""

    def initialize(self, behind: str):
        self.behind = behind.replace("http://", "ws://", 1)

    def check_origin(self, origin):
        return True  # the server behind looks at it

    def select_subprotocol(self, subprotocols):
        return subprotocols[0] if subprotocols else None

    async def open(self, *path):
        sent = self.request.headers
        kept = {name: sent[name] for name in ("Host", "Origin", "Cookie") if name in sent}
        wanted = sent.get("Sec-WebSocket-Protocol", "")
        self.other = await websocket.websocket_connect(
            httpclient.HTTPRequest(self.behind + self.request.uri, headers=kept),
            subprotocols=[name.strip() for name in wanted.split(",") if name.strip()],
            max_message_size=2**26,
        )
        self.back = asyncio.create_task(self._bring_back())

    async def _bring_back(self):
        while (message := await self.other.read_message()) is not None:
            await self.write_message(message, binary=isinstance(message, bytes))
        self.close()

    async def on_message(self, message):
        await self.other.write_message(message, binary=isinstance(message, bytes))

    def on_close(self):
        if hasattr(self, "other"):
            self.other.close()


class OneOrTheOther(web.RequestHandler):
    """Websockets and plain requests come under the same addresses."""

    def __new__(cls, application, request, **options):
        upgrade = request.headers.get("Upgrade", "").lower() == "websocket"
        return (HandOnMessages if upgrade else HandOn)(application, request, **options)


@contextmanager
def proxied(address: str):
    """A proxy before the server at `address`, whose path is the prefix; yields the proxy's own
    address of the same place, and the paths that it was asked for in vain."""
    parts = urlsplit(address)
    lost: list[str] = []

    class NotHere(web.RequestHandler):
        def prepare(self):
            lost.append(self.request.uri)
            raise web.HTTPError(404)

    options = {"behind": f"{parts.scheme}://{parts.netloc}"}
    prefix = parts.path.rstrip("/")
    routes = [(f"{prefix}/.*", OneOrTheOther, options), (".*", NotHere)]
    started, loops, ports = threading.Event(), [], []

    async def serve():
        stop = asyncio.Event()
        sockets = netutil.bind_sockets(0, "127.0.0.1")
        server = httpserver.HTTPServer(
            web.Application(routes, websocket_max_message_size=2**26, log_function=lambda _: None),
            max_buffer_size=2**28,
        )
        server.add_sockets(sockets)
        ports.append(sockets[0].getsockname()[1])
        loops.append((asyncio.get_running_loop(), stop))
        started.set()
        await stop.wait()
        server.stop()
        await server.close_all_connections()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(10), "the proxy did not start"
    try:
        yield f"http://127.0.0.1:{ports[0]}{prefix}/", lost
    finally:
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
