"""The OpenTelemetry SDK with OTLP over HTTP, configured by its own variables; needs the extra `otel`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from threading import Thread
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

import punchlist

FLUSH_SECONDS: Final = 3.0
"""How long the end of a program waits for a collector."""


@cache
def exporting() -> tuple[Tracer, Meter, Callable[[], None]]:
    """One tracer and meter for the process, and a function that sends what is left.

    Providers that the calling program has set are used.
    """
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override these.
    resource = Resource({SERVICE_NAME: "punchlist", SERVICE_VERSION: punchlist.__version__}).merge(Resource.create())
    tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
    if not isinstance(tracers, TracerProvider):
        tracers = TracerProvider(resource=resource)
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    if not isinstance(meters, MeterProvider):
        meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
    version = punchlist.__version__
    return (
        tracers.get_tracer("punchlist", version),
        meters.get_meter("punchlist", version),
        partial(_flush, tracers, meters),
    )


def _flush(tracers: TracerProvider, meters: MeterProvider) -> None:
    def send() -> None:
        tracers.force_flush()
        meters.force_flush()

    # A daemon: an exporter that does not return must not keep the program.
    thread = Thread(target=send, daemon=True)
    thread.start()
    thread.join(FLUSH_SECONDS)
