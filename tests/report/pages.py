"""Reading a report as a browser would: elements, attributes, texts, and whether every tag is closed."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """All elements in order of their start; ``open_tags`` is empty where every tag was closed in order."""

    elements: list[Element] = field(default_factory=list)
    open_tags: list[Element] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open_tags.append(element)

    def handle_endtag(self, tag: str) -> None:
        if not self.open_tags or self.open_tags[-1].tag != tag:
            self.mistakes.append(f"</{tag}> closes {[element.tag for element in self.open_tags[-1:]]}")
        else:
            self.open_tags.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open_tags:
            element.text += data

    def of(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    @property
    def text(self) -> str:
        return self.of("body")[0].text

    def pictures(self) -> list[bytes]:
        return [base64.b64decode(image.attributes["src"].partition(",")[2]) for image in self.of("img")]


def read(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open_tags, page.open_tags
    assert not page.mistakes, page.mistakes
    return page
