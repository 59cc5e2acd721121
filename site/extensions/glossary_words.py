"""Words of the glossary: each row can be linked to, each lesson links a word where it uses it
first, and the glossary links the lessons that teach a word."""

import re
from dataclasses import dataclass

from docutils import nodes

GLOSSARY = "docs/glossary"
# words that lessons use in another sense too: linked only in the lessons that teach them
EVERYDAY = set(
    "accumulation block bus cache chain channel dense head key link miss panel query record sheet "
    "slope sparse value weight window".split()
)
# and such as are not linked at all
NEVER = {"dot", "set"}
# where a row's words are not simply parted by commas
SPELLED_OUT = {
    "chains, independent": ["independent chains"],
    "counted, nominal, measured peak": ["counted peak", "nominal peak", "measured peak"],
}
NOT_INSIDE = (nodes.title, nodes.table, nodes.literal, nodes.reference, nodes.math)


@dataclass(frozen=True)
class Entry:
    """A row of the glossary: the id of its row on the page, and what it says."""

    id: str
    words: tuple[str, ...]
    meaning: str
    lessons: tuple[int, ...]


def entry(row):
    """The entry of one row of the glossary's table."""
    name, meaning, taught = (cell.astext() for cell in row.children)
    plain = re.sub(r" \([^)]*\)", "", name)
    words = SPELLED_OUT.get(name) or plain.split(", ")
    return Entry(
        "word-" + nodes.make_id(name), tuple(words), meaning, tuple(map(int, taught.split(",")))
    )


def entries(document):
    """The entries of the glossary's page, in their order."""
    return [entry(row) for body in document.findall(nodes.tbody) for row in body.children]


def words_of(lesson, glossary):
    """{word: entry} of all words that this lesson may link; of two rows on one word the first."""
    found = {}
    for one in entries(glossary):
        for word in one.words:
            if word not in NEVER and (word not in EVERYDAY or lesson in one.lessons):
                found.setdefault(word, one)
    return found


def pattern(words):
    """Matches any of the words, also in the plural and at the beginning of a sentence; the longest
    one where several fit."""
    forms = {form for word in words for form in (word, word[0].upper() + word[1:])}
    choice = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(rf"(?<![\w/-])({choice})(s|es)?(?![\w/-])")


def link_first_uses(document, words, glossary_uri):
    """Link each word of the glossary where the document's text has it first."""
    looked_for, left = pattern(words), dict(words)

    def is_prose(node):
        parents = []
        while node.parent is not None:
            node = node.parent
            parents.append(node)
        return any(isinstance(node, nodes.paragraph) for node in parents) and not any(
            isinstance(node, NOT_INSIDE) for node in parents
        )

    for text in [node for node in document.findall(nodes.Text) if is_prose(node)]:
        pieces, done = [], 0
        for match in looked_for.finditer(text):
            word = match[1] if match[1] in words else match[1][0].lower() + match[1][1:]
            if word not in left:
                continue
            target = left[word]
            left = {other: one for other, one in left.items() if one is not target}
            pieces.append(nodes.Text(text[done : match.start()]))
            pieces.append(
                nodes.reference(
                    "",
                    match[0],
                    internal=True,
                    refuri=f"{glossary_uri}#{target.id}",
                    reftitle=target.meaning,
                    classes=["word"],
                )
            )
            done = match.end()
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[done:])])


def link_lessons(document, addresses):
    """Give each row of the glossary its id, and link the lessons that its last cell names."""
    for body in document.findall(nodes.tbody):
        for row in body.children:
            row["ids"].append(entry(row).id)
            paragraph = row.children[2].children[0]
            pieces = []
            for number in entry(row).lessons:
                pieces += [nodes.Text(", ")] if pieces else []
                pieces.append(
                    nodes.reference("", str(number), internal=True, refuri=addresses[number])
                )
            paragraph.children = []
            paragraph.extend(pieces)


def link_words(app, document, docname):
    def address(other):
        return app.builder.get_relative_uri(docname, other)

    lessons = sorted(name for name in app.env.found_docs if name.startswith("notebooks/"))
    if docname == GLOSSARY:
        link_lessons(document, [address(lesson) for lesson in lessons])
    elif docname in lessons:
        words = words_of(lessons.index(docname), app.env.get_doctree(GLOSSARY))
        link_first_uses(document, words, address(GLOSSARY))


def setup(app):
    app.connect("doctree-resolved", link_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
