"""The trade as a picture: honest tasks that pass against attacks that come through."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

GREEN, RED, VIOLET, GREY = "#228833", "#cc3311", "#aa3377", "#dddddd"


def svg(found: list[dict[str, Any]]) -> str:
    """Two bars per setup, both in per cent: honest tasks passed, and attacks through (poisoned records as a line)."""
    row, left, width = 46, 230, 420
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 130}" height="{row * len(found) + 64}">',
        "<style>text { font: 13px sans-serif }</style>",
        '<text x="8" y="20">AgentDojo, a model that obeys at any point. Green: honest tasks that pass.</text>',
        '<text x="8" y="38">Red: attacks that come through; violet line: with poisoned records.</text>',
    ]
    for place, data in enumerate(found):
        y = 52 + place * row
        honest = data["honest"]
        part = honest["passed"] / honest["tasks"]
        lines += [
            f'<text x="{left - 8}" y="{y + 20}" text-anchor="end">{escape(data["name"])}</text>',
            f'<rect x="{left}" y="{y}" width="{width}" height="14" fill="{GREY}"/>',
            f'<rect x="{left}" y="{y}" width="{part * width:.1f}" height="14" fill="{GREEN}"/>',
            f'<text x="{left + width + 6}" y="{y + 12}">{honest["passed"]} of {honest["tasks"]}</text>',
        ]
        if "clean" in data:
            borne = data["clean"]["tool-borne"]
            part = borne["through"] / borne["pairs"]
            lines += [
                f'<rect x="{left}" y="{y + 17}" width="{width}" height="14" fill="{GREY}"/>',
                f'<rect x="{left}" y="{y + 17}" width="{part * width:.1f}" height="14" fill="{RED}"/>',
                f'<text x="{left + width + 6}" y="{y + 29}">{borne["through"]} of {borne["pairs"]}</text>',
            ]
        if "poisoned" in data:
            borne = data["poisoned"]["tool-borne"]
            x = left + borne["through"] / borne["pairs"] * width
            lines.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y + 15}" y2="{y + 33}" stroke="{VIOLET}" stroke-width="3"/>'
            )
    return "\n".join([*lines, "</svg>", ""])
