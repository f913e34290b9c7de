# SPDX-License-Identifier: Apache-2.0
"""html_page.py FILE [TEXT...]: what a page of cltool consists of.

Fails unless elements are balanced, nothing is loaded from elsewhere, and each TEXT is part of the
text, the titles or the attributes that a reader sees. Prints headings, columns of tables, and the
numbers of rows, boxes, points and scripts.
"""

import collections
import html.parser
import re
import sys

VOID = {"meta", "input", "br", "rect", "path", "line", "polyline"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.headings, self.tables, self.text = [], [], [], []
        self.counts = collections.Counter()

    def handle_starttag(self, tag, attributes):
        self.counts[tag] += 1
        for name, value in attributes:
            assert name not in ("src", "srcset", "action", "data"), (tag, name)
            assert not name.startswith("on"), (tag, name)
            assert name != "href" or value.startswith("#"), value
            if name == "title":
                self.text.append(value)
        if tag == "table":
            self.tables.append([])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open, self.getpos())
        self.open.pop()

    def handle_data(self, data):
        where = self.open[-1] if self.open else ""
        if where in ("style", "script"):
            assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp|import\(", data), where
            return
        self.text.append(data)
        if where in ("h1", "h2"):
            self.headings.append(data)
        if where == "button" and "th" in self.open:
            self.tables[-1].append(data)


def main():
    page = Page()
    with open(sys.argv[1], encoding="utf-8") as file:
        source = file.read()
    page.feed(source)
    page.close()
    assert not page.open, page.open
    for text in sys.argv[2:]:
        assert any(text in part for part in page.text), text
    assert "default-src 'none'" in source
    print("headings:", " | ".join(page.headings))
    for columns in page.tables:
        print("columns:", " | ".join(columns))
    n = page.counts
    print("rows", n["tr"] - n["table"], "boxes", n["rect"], "scripts", n["script"])


main()
