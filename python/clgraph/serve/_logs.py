# SPDX-License-Identifier: Apache-2.0
"""Logs: a JSON object a line on stderr, of this server, KServe and uvicorn."""

import datetime
import json
import logging
import traceback
from typing import Any, Optional

log = logging.getLogger("clgraph.serve")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        fields = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(fields, default=str)


def configure(level: str) -> None:
    """Has all loggers of the process write JSON; KServe configures none that have handlers."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json())
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name in ("kserve", "kserve.trace", "uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler] if name == "kserve" else []
        logger.propagate = name != "kserve"
        # A line for each step of theirs is for those who debug.
        logger.setLevel("DEBUG" if level == "debug" else "WARNING")


def event(
    message: str, level: int = logging.INFO, fault: Optional[BaseException] = None, **fields: Any
) -> None:
    """Writes a line; a fault adds its traceback."""
    log.log(level, message, exc_info=fault, extra={"fields": fields})
