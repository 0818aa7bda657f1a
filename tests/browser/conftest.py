"""The built pages, served on localhost, and a headless Chromium to read them."""

import contextlib
import shutil
from dataclasses import dataclass, field

import build_book
import pytest
from playwright.sync_api import sync_playwright
from serving import HTML, PAGES, Quiet, served

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# No sandbox: as root, Chromium starts only without it. The rest keeps the browser itself off the network.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def address():
    """Address of the served book, with a slash at the end."""
    if not (HTML / build_book.COMPLETE).is_file():
        pytest.fail("no built pages: run 'make book' first", pytrace=False)
    with served(Quiet) as found:
        yield found + "/"


@pytest.fixture(scope="session")
def browser():
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail("no Chromium or Chrome on the path: apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@dataclass
class Visit:
    """One page opened in a fresh context, and everything that went wrong while it loaded."""

    name: str
    width: int
    scheme: str
    page: object
    errors: list[str] = field(default_factory=list)  # console errors and uncaught exceptions
    failed: list[str] = field(default_factory=list)  # requests without a good answer
    outside: list[str] = field(default_factory=list)  # requests to anywhere but the served book


@pytest.fixture(scope="session")
def visit(browser, address):
    """Context manager that opens a page of the book and waits until its equations are set."""

    @contextlib.contextmanager
    def open_page(name, *, width=1280, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        page = context.new_page()
        seen = Visit(name, width, scheme, page)
        own = (address, "data:", "blob:", "about:")
        page.on("console", lambda m: seen.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: seen.errors.append(str(e)))
        page.on("requestfailed", lambda r: seen.failed.append(r.url))
        page.on("response", lambda r: seen.failed.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.on("request", lambda r: None if r.url.startswith(own) else seen.outside.append(r.url))
        page.goto(address + name, wait_until="load", timeout=60_000)
        if name == "index.html":
            page.wait_for_url("**/intro.html")
        page.wait_for_load_state("networkidle", timeout=60_000)
        if scripts:
            page.evaluate("() => window.MathJax?.startup?.promise")
        yield seen
        context.close()

    return open_page


@pytest.fixture(scope="module", params=PAGES)
def desk(request, visit):
    """Each page of the book in a wide, light window."""
    with visit(request.param) as seen:
        yield seen


@pytest.fixture(scope="module", params=PAGES)
def dark(request, visit):
    """Each page of the book in a wide, dark window."""
    with visit(request.param, scheme="dark") as seen:
        yield seen


@pytest.fixture(scope="module", params=PAGES)
def phone(request, visit):
    """Each page of the book on a telephone."""
    with visit(request.param, width=390) as seen:
        yield seen
