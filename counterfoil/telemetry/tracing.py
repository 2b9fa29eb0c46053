"""The caller's trace context, where OpenTelemetry is installed. It starts no span and sends nothing."""

import importlib
from typing import Any


def _current_span() -> Any:
    try:
        return importlib.import_module("opentelemetry.trace").get_current_span
    except ImportError:
        return None


_span_of: list[Any] = []  # looked up once: [] not yet, [None] without OpenTelemetry


def current_traceparent() -> str | None:
    """The caller's W3C trace context, where OpenTelemetry is installed and a span is open; else None."""
    if not _span_of:
        _span_of.append(_current_span())
    if _span_of[0] is None:
        return None
    context = _span_of[0]().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags) & 0xFF:02x}"
