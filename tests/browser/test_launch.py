"""The run buttons: every launch link leads to this repository and to a file that is in it; notebooks download."""

import json
import re
import subprocess
from urllib.parse import parse_qs, urlsplit

import address
import build_book
import first_cell
import notebooks
import pytest
import yaml
from serving import HTML

ROOT = build_book.ROOT
BRANCH = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["branch"]
OWN = address.short(first_cell.repository_url())
LINK = re.compile(r'href="(https?://[^"]+)"')
ENTRIES = build_book.toc_entries(ROOT)
NOTEBOOKS = [entry for entry in ENTRIES if (ROOT / f"{entry}.ipynb").is_file()]


def text_of(entry):
    return (HTML / f"{entry}.html").read_text(encoding="utf-8")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.split("\0"))


def launch_links(text):
    """(service, repository, branch, path) of each link to Binder and Colab."""
    for link in LINK.findall(text.replace("&amp;", "&")):
        parts = urlsplit(link)
        if parts.netloc == "mybinder.org":
            form = re.fullmatch(r"/v2/gh/([^/]+/[^/]+)/([^/]+)", parts.path)
            assert form, link
            (target,) = parse_qs(parts.query)["urlpath"]
            assert target.startswith("lab/tree/"), link  # JupyterLab
            yield "binder", form[1], form[2], target.removeprefix("lab/tree/")
        elif parts.netloc == "colab.research.google.com":
            form = re.fullmatch(r"/github/([^/]+/[^/]+)/blob/([^/]+)/(.+)", parts.path)
            assert form, link
            yield "colab", form[1], form[2], form[3]


@pytest.mark.parametrize("entry", NOTEBOOKS)
def test_launch_links_of_a_chapter(entry):
    found = list(launch_links(text_of(entry)))
    assert {service for service, *_ in found} == {"binder", "colab"}  # the header's, and those of a lab
    for _, repository, branch, path in found:
        assert (repository, branch, path) == (OWN, BRANCH, f"{entry}.ipynb")
        assert path in tracked()


def test_launch_links_everywhere_else():
    """Of the pages of text and of the README; Colab opens notebooks only."""
    files = tracked()
    texts = [text_of(entry) for entry in ENTRIES if entry not in NOTEBOOKS]
    texts.append(re.sub(r"\((https?://[^)]+)\)", r'href="\1"', (ROOT / "README.md").read_text(encoding="utf-8")))
    found = [link for text in texts for link in launch_links(text)]
    assert len(found) >= 2  # README's
    for service, repository, branch, path in found:
        assert (repository, branch) == (OWN, BRANCH) and path in files, path
        assert path.endswith(".ipynb") or service == "binder", path


def test_links_to_the_repository():
    for entry in ENTRIES:
        for link in LINK.findall(text_of(entry)):
            parts = urlsplit(link)
            if parts.netloc == "github.com" and parts.path.startswith(f"/{OWN}"):
                assert re.fullmatch(rf"/{re.escape(OWN)}(/issues/new)?/?", parts.path), link


@pytest.mark.parametrize("entry", NOTEBOOKS[:2])
def test_a_notebook_downloads(visit, entry):
    with visit(f"{entry}.html") as seen:
        seen.page.locator(".dropdown-download-buttons > button").click()
        link = seen.page.locator(".btn-download-source-button")
        assert link.is_visible() and link.get_attribute("download") is not None
        with seen.page.expect_download() as waiting:
            link.click()
        download = waiting.value
        assert download.suggested_filename == entry.rpartition("/")[2] + ".ipynb"
        with open(download.path(), encoding="utf-8") as file:
            notebook = json.load(file)
        stored = notebooks.read(ROOT / f"{entry}.ipynb")
        assert [cell["id"] for cell in notebook["cells"]] == [cell.id for cell in stored.cells]
        assert not first_cell.faults(notebooks.read(download.path()))
