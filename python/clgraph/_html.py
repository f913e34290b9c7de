# SPDX-License-Identifier: Apache-2.0
"""HTML for notebooks: tables without scripts, in colours that suit light and dark themes."""

from html import escape


def _table(head, rows, caption=""):
    cells = "".join(f'<th style="text-align:left">{escape(h)}</th>' for h in head)
    body = "".join("<tr>" + "".join(rows_cells(row)) + "</tr>" for row in rows)
    title = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def rows_cells(row):
    for cell in row:
        html = cell if isinstance(cell, _Raw) else escape(str(cell))
        yield f'<td style="text-align:left">{html}</td>'


class _Raw(str):
    """Text that is HTML already."""


def _bar(share):
    return _Raw(
        '<span style="display:inline-block;height:0.8em;background:#4c8bf5;'
        f'width:{max(share, 0) * 160:.0f}px"></span> {share:.1%}'
    )


def size(n_bytes):
    """Returns a number of bytes as "1.5 MiB"."""
    for unit in ("B", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} B" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GiB"


def devices(found):
    def features(d):
        if not d.probed:
            return "not probed"
        names = ("fp16", "fp64", "subgroups", "int8_dot", "matrix")
        return ", ".join(n for n in names if getattr(d, n)) or "none of the optional ones"

    rows = [
        (d.selector, d.name, d.platform, d.kind, d.compute_units, size(d.global_mem_bytes),
         features(d), d.auto_reason)
        for d in found
    ]  # fmt: skip
    head = ("selector", "device", "platform", "kind", "units", "memory", "features", "auto")
    return _table(head, rows, f"{len(rows)} OpenCL device{'s' if len(rows) != 1 else ''}")


def session(name, device, precision, inputs, outputs, memory, places):
    def port(p, what):
        shape = "any rank" if p.shape is None else " × ".join(str(d) for d in p.shape) or "scalar"
        return (what, p.name, p.type, shape)

    rows = [port(p, "input") for p in inputs] + [port(p, "output") for p in outputs]
    html = _table(("", "name", "type", "shape"), rows, f"{name} on {device}, {precision}")
    if places:
        total = sum(places.values())
        rows = [(place, n, _bar(n / total)) for place, n in places.items()]
        html += _table(("nodes computed", "", ""), rows)
    if memory:
        rows = [(what, size(n)) for what, n in memory]
        html += _table(("device memory", ""), rows)
    return html


def profile(steps, total_us):
    rows = [
        (s.node, s.op_type, s.kernel, f"{s.duration_us:.1f}",
         _bar(s.duration_us / total_us if total_us else 0),
         f"{s.flops / s.duration_us / 1e3:.1f}" if s.flops and s.duration_us else "")
        for s in steps
    ]  # fmt: skip
    head = ("node", "operator", "kernel", "µs", "share", "GFLOP/s")
    return _table(head, rows, f"{len(steps)} steps, {total_us:.1f} µs on the device")


def parts(found):
    if any(p.n_nodes for p in found):
        return _layers(found)
    rows = [
        (p.device, p.name, p.rows, _bar(p.share), f"{p.rows_per_s:.0f}" if p.rows_per_s else "",
         f"{p.busy_s * 1e3:.2f}", f"{p.idle_share:.0%}", "lost" if p.is_lost else "")
        for p in found
    ]  # fmt: skip
    head = ("selector", "device", "rows", "share of the next run", "rows/s", "busy ms", "idle", "")
    return _table(head, rows, f"{len(rows)} device{'s' if len(rows) != 1 else ''} of the session")


def _layers(found):
    rows = [
        (p.device, p.name, p.n_nodes, p.first_node, p.last_node, p.weight_bytes, p.crossing_bytes,
         _bar(p.share), f"{p.busy_s * 1e3:.2f}", "lost" if p.is_lost else "")
        for p in found
    ]  # fmt: skip
    head = ("selector", "device", "nodes", "first", "last", "weight bytes", "bytes that cross",
            "share of the time", "busy ms", "")  # fmt: skip
    return _table(head, rows, f"{len(rows)} device{'s' if len(rows) != 1 else ''} of the session")


def selftest(cases):
    rows = [
        ("passed" if t.passed else "FAILED", t.op_type, t.impl, t.kernel, t.problem,
         f"{t.worst_error:.1e}", f"{t.bound:.1e}", t.failure)
        for t in cases
    ]  # fmt: skip
    head = ("", "operator", "implementation", "kernel", "problem", "error", "bound", "")
    return _table(head, rows, repr(cases)[1:-1])
