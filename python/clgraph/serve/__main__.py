# SPDX-License-Identifier: Apache-2.0
"""`python -m clgraph.serve`."""

import sys

from ._options import parse

if __name__ == "__main__":
    options = parse(sys.argv[1:])  # before KServe is imported, which takes a second
    try:
        from ._server import main
    except ImportError as e:
        sys.exit(f"clgraph.serve: {e}\nhint: pip install 'clgraph[serve]'")
    sys.exit(main(options))
