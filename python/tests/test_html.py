# SPDX-License-Identifier: Apache-2.0
"""The tables that notebooks show; and what else lists devices."""

from html.parser import HTMLParser

import numpy as np
import pytest
from conftest import DIGITS, unary

import clgraph


class Balanced(HTMLParser):
    """Fails where an end tag does not match; collects the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attributes):
        assert tag != "script"
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def text_of(thing):
    parser = Balanced()
    parser.feed(thing._repr_html_())
    assert not parser.open
    return " ".join(parser.text)


def test_devices(device):
    found = clgraph.devices(probe=True)
    assert device.device.id in [d.id for d in found]
    text = text_of(found)
    assert all(d.name in text and d.selector in text for d in found)
    assert device.device.probed and device.device.name in text_of(device.device)
    assert clgraph.select(device.device.selector)[0].id == device.device.id
    assert len(clgraph.select("all")) == len(found)
    with pytest.raises(clgraph.NoDevice):
        clgraph.select("no such device")
    assert clgraph.select("no such device", fallback=device.device.selector)
    assert device.device.platform in clgraph.diagnose()


def test_session_and_profile(device):
    session = clgraph.InferenceSession(DIGITS, device.device, profiling=True)
    text = text_of(session)
    for word in ("image", "probabilities", "tensor(float)", "batch", "weights", "on the device"):
        assert word in text, word
    session.run(None, {"image": np.zeros((4, 1, 8, 8), np.float32)})
    profile = session.profile()
    text = text_of(profile)
    assert all(step.kernel in text for step in profile) and "%" in text


def test_names_are_escaped(device):
    proto = unary("Relu")
    proto.graph.name = "<script>alert(1)</script>"
    session = clgraph.InferenceSession(proto, device)
    assert "<script>" in text_of(session) and "<script>" not in session._repr_html_()


def test_selftest_can_be_cancelled(device):
    seen = []

    def progress(what, done, total):
        seen.append(total)
        return done < 2

    with pytest.raises(clgraph.Cancelled):
        clgraph.selftest(device, progress=progress)
    assert seen
