"""The web pages: they show what the notebooks store, lead where they say, ask nobody else for
anything, and can be read by everyone."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import content
import pytest
from harness.repository import ROOT

import roofline_lib as rl
from roofline_lib.course.lessons import lessons
from roofline_lib.questions import find_question

LESSONS = [f"notebooks/{lesson.stem}" for lesson in lessons()]
EXERCISES = [f"exercises/{lesson.stem}/{lesson.stem}" for lesson in lessons()[1:]]
SOLUTIONS = [name.replace("exercises", "solutions") for name in EXERCISES]
# one page of each kind, and the part of it that axe looks at: of the library's names one topic,
# because axe takes half a minute for all of them
KINDS = {
    "index": "html",
    LESSONS[2]: "html",
    EXERCISES[2]: "html",
    EXERCISES[2].replace("exercises", "solutions"): "html",
    "docs/glossary": "html",
    "docs/api": "#work-and-its-bound",
    "docs/teaching": "html",
    "search": "html",
}
# what depends on the colours
COLOURS = ["color-contrast", "link-in-text-block"]


@dataclass
class Page(HTMLParser):
    """What a page holds, read from its HTML."""

    ids: set = field(default_factory=set)
    links: list = field(default_factory=list)
    loads: list = field(default_factory=list)
    pictures: list = field(default_factory=list)
    words: list = field(default_factory=list)
    tags: list = field(default_factory=list)
    texts: list = field(default_factory=list)
    opened: list = field(default_factory=list)
    unfolded: list = field(default_factory=list)
    folds: int = 0  # that stand open around what is being read

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.tags.append(tag)
        self.folds += tag == "details"
        if "id" in known:
            self.ids.add(known["id"])
        if tag == "a" and "href" in known:
            self.links.append(known["href"])
            if "word" in known.get("class", "").split():
                self.words.append((known["href"], known["title"]))
        if tag == "link" and known.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(known["href"])
        if "src" in known:
            self.loads.append(known["src"])
        if tag == "details" and "open" in known:
            self.opened.append(known)
        if tag == "img":
            self.pictures.append(known.get("alt"))
            self.unfolded += [] if self.folds else [known.get("alt", "")]

    def handle_endtag(self, tag):
        self.folds -= tag == "details"

    def handle_data(self, data):
        self.texts.append(data)
        self.unfolded += [] if self.folds else [data]

    @property
    def text(self):
        """All that is written, spaces made one."""
        return spaced("".join(self.texts))

    @property
    def seen(self):
        """What is written outside of folds, and what the pictures there show, spaces made one."""
        return spaced("".join(self.unfolded))


def spaced(text):
    return " ".join(text.split())


@cache
def page(folder, name):
    read = Page()
    read.feed((folder / f"{name}.html").read_text(encoding="utf-8"))
    return read


def names(folder):
    """The names of all pages, the browser edition's own not among them."""
    paths = (path.relative_to(folder) for path in folder.glob("**/*.html"))
    return sorted(str(path.with_suffix("")) for path in paths if path.parts[0] != "lite")


@cache
def notebook(name):
    return json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def source_of(cell):
    return "".join(cell["source"])


def outputs(name):
    return [output for cell in notebook(name) for output in cell.get("outputs", [])]


def prose(name):
    return "\n\n".join(
        "".join(cell["source"]) for cell in notebook(name) if cell["cell_type"] == "markdown"
    )


def is_outside(link):
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def test_every_link_inside_the_site_leads_to_its_place(pages):
    broken = []
    for name in names(pages):
        here = (pages / name).parent
        for link in {*page(pages, name).links, *page(pages, name).loads}:
            if is_outside(link):
                continue
            path, anchor = urlsplit(link).path, unquote(urlsplit(link).fragment)
            target = (here / unquote(path)).resolve() if path else pages / f"{name}.html"
            if target.is_relative_to(pages / "lite"):
                continue  # the browser edition is a part of its own, and has its own tests
            there = target.is_file()
            if there and anchor and target.suffix == ".html":
                other = str(target.relative_to(pages).with_suffix(""))
                there = anchor in page(pages, other).ids
            broken += [] if there else [(name, link)]
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages):
    loaded = {
        (name, file)
        for name in names(pages)
        for file in page(pages, name).loads
        if is_outside(file) and not file.startswith("data:")
    }
    assert loaded == set()
    own = [path for path in pages.glob("**/*") if "lite" not in path.relative_to(pages).parts]
    for path in own:
        if path.suffix in (".html", ".css", ".js"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"url\(\s*['\"]?https?:|@import\s+['\"]?https?:", text), path
            assert not re.search(r"jsdelivr|unpkg|cdnjs|googleapis|cloudflare", text), path


def test_no_source_of_a_notebook_is_a_link(pages):
    """A link to a notebook must have become one to its page."""
    assert {
        (name, link)
        for name in names(pages)
        for link in page(pages, name).links
        if ".ipynb" in link and "lite/" not in link
    } == set()


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_shows_what_its_notebook_stores(pages, name):
    written = page(pages, name).text
    for output in outputs(name):
        if output["output_type"] == "stream":
            assert " ".join("".join(output["text"]).split()) in written
    pictures = [output["data"] for output in outputs(name) if "image/png" in output.get("data", {})]
    assert len(page(pages, name).pictures) == len(pictures)


def answering(name):
    """The cells whose outputs answer a guess: those that hold one against its answer, and what
    comes between them and the next text."""
    found, guessed = [], False
    for cell in notebook(name):
        guessed = cell["cell_type"] == "code" and (guessed or "rl.guessed(" in source_of(cell))
        found += [cell] if guessed and cell["outputs"] else []
    return found


@pytest.mark.parametrize("name", LESSONS)
def test_what_answers_a_guess_is_folded(pages, name):
    """A page has it before anybody has guessed; in a learner's notebook it comes when cells run."""
    shown, answers = page(pages, name), answering(name)
    for cell in answers:
        for output in cell["outputs"]:
            told = "".join(output.get("text", "")) or cell["metadata"].get("alt", "?")
            assert spaced(told) in spaced(f"{shown.text} {' '.join(shown.pictures)}")
            assert spaced(told) not in shown.seen, cell["id"]
    assert not shown.opened and "Run the cell" not in shown.text
    assert shown.text.count("Guess, then see what comes out") == len(answers) > 0


@pytest.mark.parametrize("name", LESSONS)
def test_what_a_notebook_folds_is_folded(pages, name):
    shown = page(pages, name)
    code = [cell for cell in notebook(name) if "jupyter" in cell["metadata"]]
    open_code = [cell for cell in answering(name) if cell not in code]
    folds = prose(name).count("<details>") + len(code) + len(open_code)
    assert shown.tags.count("details") == folds
    for cell in code:
        assert spaced(source_of(cell)) not in shown.seen


@pytest.mark.parametrize("name", [*EXERCISES, *SOLUTIONS])
def test_a_page_asks_each_question_in_words(pages, name):
    shown = page(pages, name).text
    ids = re.findall(r'rl\.check\("([^"]+)", \.\.\.\)', "\n".join(map(source_of, notebook(name))))
    assert len(ids) > 2
    for question in map(find_question, ids):
        assert spaced(question.prompt) in shown, question.id


@pytest.mark.parametrize("name", LESSONS)
def test_a_picture_says_what_it_shows_and_an_explorer_its_sentence(pages, name):
    alts = page(pages, name).pictures
    shown = [
        cell["metadata"].get("alt") or "".join(output["data"]["text/plain"]).partition(": ")[2]
        for cell in notebook(name)
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert alts == [" ".join(words.split()) for words in shown]
    assert all(len(words) > 40 for words in alts)
    written = page(pages, name).text
    for output in outputs(name):
        text = " ".join("".join(output.get("data", {}).get("text/plain", "")).split())
        if "Explorer: " in text[:30]:
            assert text.partition(": ")[2] in written


@pytest.mark.parametrize("name", LESSONS)
def test_formulas_are_mathml(pages, name):
    stored = re.findall(r"\$\$.+?\$\$|(?<![\\$])\$[^$\n]+\$(?!\$)", prose(name), re.S)
    assert page(pages, name).tags.count("math") == len(stored)
    assert not re.search(r"\\(frac|text|max|left|qquad)|\$\$", page(pages, name).text)


def glossary_rows():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+) \| ([\d, ]+) \|$", text, re.M)
    return [(word, [int(lesson) for lesson in numbers.split(",")]) for word, _, numbers in rows]


def test_the_glossary_links_the_lessons_that_teach_a_word(pages):
    links = [link for link in page(pages, "docs/glossary").links if "#" not in link]
    for word, numbers in glossary_rows():
        for number in numbers:
            assert f"../{LESSONS[number]}.html" in links, word
    assert sum(len(numbers) for _, numbers in glossary_rows()) <= len(links)


def test_a_word_is_linked_once_in_a_lesson_and_says_what_it_means(pages):
    known = page(pages, "docs/glossary")
    for name in LESSONS:
        words = page(pages, name).words
        assert len({link for link, _ in words}) == len(words) > 3
        for link, meaning in words:
            assert link.startswith("../docs/glossary.html#word-")
            assert link.partition("#")[2] in known.ids
            assert " ".join(meaning.split()) in known.text


@pytest.mark.parametrize("word", ["ridge point", "memory-bound", "arithmetic intensity", "KV head"])
def test_a_lesson_links_the_words_that_it_teaches(pages, word):
    taught = dict(glossary_rows())[word]
    anchor = "#word-" + word.lower().replace(" ", "-")
    for number in taught:
        links = page(pages, LESSONS[number]).links
        assert any(link.endswith(anchor) for link in links)


def test_the_front_page_lists_lessons_and_ways_in(pages):
    front = page(pages, "index")
    for lesson in lessons():
        assert f"{lesson.number} {lesson.title} {lesson.question} {lesson.minutes}" in front.text
        assert f"notebooks/{lesson.stem}.html" in front.links
    assert any(link.startswith("lite/") for link in front.links)
    for command in ("pip install '.[course]'", "roofline course", "make lab"):
        assert command in front.text


@pytest.mark.parametrize("name", [*LESSONS, *EXERCISES])
def test_lessons_and_exercises_lead_to_the_browser_edition(pages, name):
    place = f"lite/lab/index.html?path={content.release()}/{name}.ipynb"
    assert any(link.endswith(place) for link in page(pages, name).links)


def test_the_page_of_the_library_has_every_public_name(pages):
    ids = page(pages, "docs/api").ids
    assert {name for name in rl.__all__ if f"roofline_lib.{name}" not in ids} == set()
    assert "gemm(m: Number, n: Number, k: Number," in page(pages, "docs/api").text
    assert {"roofline_lib.Machine.ridge_point", "roofline_lib.Transformer.decode"} <= ids


def test_model_answers_show_no_grader(pages):
    for name in EXERCISES:
        shown = page(pages, name.replace("exercises", "solutions")).text
        assert shown.count("Model answers") and "###" not in shown and "marked(" not in shown


@pytest.mark.browser
def test_no_page_asks_others_or_scrolls_sideways(alone, pages, scenes, address):
    """On a telephone's 390 pixels."""
    context = alone.new_context(viewport={"width": 390, "height": 844})
    tab, wrong, asked = context.new_page(), [], []
    tab.on("console", lambda said: said.type == "error" and wrong.append((tab.url, said.text)))
    tab.on("pageerror", lambda error: wrong.append((tab.url, str(error))))
    tab.on("request", lambda request: asked.append(request.url))
    for name in names(pages):
        tab.goto(f"{address}/{name}.html")
        if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append((name, "scrolls sideways"))
    context.close()
    assert wrong == []
    assert {url for url in asked if not url.startswith((f"{address}/", "data:"))} == set()


@pytest.mark.browser
def test_a_word_is_found_without_a_server(alone, address):
    tab = alone.new_page()
    tab.goto(f"{address}/search.html?q=ridge")
    # results come one by one
    tab.wait_for_selector("#search-results a[href*='02_roofline']", state="attached")
    tab.wait_for_function("document.querySelectorAll('#search-results li').length > 5")
    found = tab.locator("#search-results a").evaluate_all("links => links.map(link => link.href)")
    assert not any("/solutions/" in link for link in found)
    tab.close()


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(alone, address, theme):
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"]} | ({"runOnly": COLOURS} if theme == "dark" else {})
    context = alone.new_context(viewport={"width": 1366, "height": 768}, color_scheme=theme)
    tab, faults = context.new_page(), []
    for name, part in KINDS.items():
        tab.goto(f"{address}/{name}.html")
        found = Axe().run(tab, context=part, options=options)
        faults += [
            (name, fault["id"], [node["html"][:120] for node in fault["nodes"][:2]])
            for fault in found.response["violations"]
            if fault["impact"] in ("serious", "critical")
        ]
    context.close()
    assert faults == []
