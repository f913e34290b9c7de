# SPDX-License-Identifier: Apache-2.0
import clgraph

# @BLOCK@
assert generator.tokens == list(range(8)), generator.tokens
