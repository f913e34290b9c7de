# SPDX-License-Identifier: Apache-2.0
import shutil

import clgraph

# @BLOCK@
