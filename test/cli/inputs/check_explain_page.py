"""check_explain_page.py PAGE REPORT [OPERATOR]: the page is well-formed HTML that loads nothing, and holds the report (timings may
differ) and the name of the operator at which it opens."""
import json
import re
import sys
from html.parser import HTMLParser

VOID = {"meta", "link", "input"}


class Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.texts, self.links = [], set(), {}, []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [value for name, value in attributes.items() if name in ("src", "href", "srcset", "data", "action")]
        if "id" in attributes:
            assert attributes["id"] not in self.ids, f"id {attributes['id']} stands twice"
            self.ids.add(attributes["id"])
        for name in ("aria-controls", "aria-labelledby", "for"):
            self.texts.setdefault("references", []).append(attributes.get(name))
        if tag not in VOID:
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"line {self.getpos()[0]}: </{tag}> ends {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data


def without_seconds(report):
    report.pop("timing")
    report["search"].pop("seconds")
    return report


page = open(sys.argv[1], encoding="utf-8", newline="").read()
reader = Reader()
reader.feed(page)
reader.close()
assert page.startswith("<!DOCTYPE html>") and reader.open == [], reader.open
assert reader.links == ["data:,"], reader.links
assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|@[A-Z_]+@", page), "something is loaded or left in"
assert all(name is None or name in reader.ids for name in reader.texts["references"])
tags = {tag for tag, _ in [key for key in reader.texts if isinstance(key, tuple)]}
assert "b" not in tags and "img" not in tags, tags

held = json.loads(reader.texts[("script", "report")])
report = json.load(open(sys.argv[2], encoding="utf-8"))
assert held.pop("selected") == (sys.argv[3] if len(sys.argv) > 3 else "")
assert without_seconds(held) == without_seconds(report)
script = reader.texts[("script", None)]
assert "\u2028" not in page and "</script" not in script
