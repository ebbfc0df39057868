#!/usr/bin/env python3
"""Draws where the time of one training step goes, from what bench_train --json prints.

usage: bench_train --json | benchmarks/step_picture.py [MODEL ...] > docs/dlrm_step.svg

Two bars for each MODEL (default: dlrm_d16_sgd dlrm_d64_adagrad), ours and the peer's, in
milliseconds of work per step.
"""
import json
import sys

PHASES = [("lookup", "#4e79a7"), ("forward", "#59a14f"), ("backward", "#f28e2b"),
          ("update", "#e15759"), ("reduce", "#b07aa1"), ("framework", "#9c755f"),
          ("idle", "#d4d4d4")]
WIDTH, LEFT, RIGHT = 860, 90, 70
BAR, GAP, HEAD = 30, 8, 34
NARROWEST_LABEL = 34


def parts_of(result, prefix):
    """[(phase, ms)], or nothing where the run had no peer."""
    out = []
    for phase, _ in PHASES:
        ms = result.get(f"{prefix}{phase}_ms")
        if ms:
            out.append((phase, ms))
    return out


def text(x, y, words, anchor="start", size=13, color="#222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" '
            f'text-anchor="{anchor}">{words}</text>')


def bar(y, name, parts, scale):
    out = [text(LEFT - 8, y + BAR * 0.66, name, "end")]
    colors = dict(PHASES)
    x = LEFT
    for phase, ms in parts:
        width = ms * scale
        out.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" '
                   f'fill="{colors[phase]}"><title>{phase}: {ms:.2f} ms</title></rect>')
        if width >= NARROWEST_LABEL:
            out.append(text(x + width / 2, y + BAR * 0.66, f"{ms:.1f}", "middle", 12, "#fff"))
        x += width
    out.append(text(x + 6, y + BAR * 0.66, f"{sum(ms for _, ms in parts):.1f} ms"))
    return out


def legend(y):
    out = []
    x = LEFT
    for phase, color in PHASES:
        out.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{color}"/>')
        out.append(text(x + 17, y + 11, phase))
        x += 34 + 8 * len(phase)
    return out


def picture(results):
    bars = []
    for result in results:
        both = [("Keel", parts_of(result, "")), ("libtorch", parts_of(result, "peer_"))]
        bars.append((result, [(name, parts) for name, parts in both if parts]))
    longest = max(sum(ms for _, ms in parts) for _, pair in bars for _, parts in pair)
    scale = (WIDTH - LEFT - RIGHT) / longest
    body = []
    y = 12
    for result, pair in bars:
        speed = result.get("ratio_to_libtorch")
        title = f'{result["op"]}, {result["threads"]} thread(s)'
        body.append(text(LEFT, y + 16, title + (f", {speed:.2f}x libtorch" if speed else "")))
        y += HEAD - 8
        for name, parts in pair:
            body += bar(y, name, parts, scale)
            y += BAR + GAP
        y += 14
    body += legend(y)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 28}" '
                      'font-family="sans-serif">', '<rect width="100%" height="100%" fill="#fff"/>',
                      *body, "</svg>"])


def main():
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__.strip())
        return 0
    wanted = sys.argv[1:] or ["dlrm_d16_sgd", "dlrm_d64_adagrad"]
    by_name = {result["op"]: result for result in json.load(sys.stdin)["results"]}
    found = [by_name[name] for name in wanted if name in by_name]
    if not found:
        print(f"step_picture: needs results of {', '.join(wanted)}, received "
              f"{', '.join(by_name) or 'none'}", file=sys.stderr)
        return 2
    print(picture(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
