"""The built pages on a local port."""

import contextlib
import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import build_book

HTML = build_book.ROOT / "_build" / "html"
PAGES = [entry + ".html" for entry in build_book.toc_entries(build_book.ROOT)]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(handler):
    """Address, without a slash at the end, where ``handler`` answers for the pages."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(HTML))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
