"""OpenTelemetry: spans and metrics of a real run, received by a collector in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra otel")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REHEARSAL = """
replies:
  - tokens: 120
    calls:
      - {tool: run_command, arguments: {command: "echo sk-secret-value"}}
      - {tool: delegate, arguments: {type: researcher, mission: Look at the private plan.}}
  - {text: The private answer., tokens: 200}
agents:
  researcher:
    - {text: Found it., tokens: 50}
"""


class Collector:
    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.received = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        self.received += body
        if path == "/v1/traces":
            told = ExportTraceServiceRequest.FromString(body)
            self.spans += [span for r in told.resource_spans for s in r.scope_spans for span in s.spans]
        elif path == "/v1/metrics":
            measured = ExportMetricsServiceRequest.FromString(body)
            for metric in (m for r in measured.resource_metrics for s in r.scope_metrics for m in s.metrics):
                self.metrics[metric.name] = metric


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever)
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join(10)
    collector.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes}


@pytest.mark.spec("X4")
def test_a_run_is_a_tree_of_spans_with_tokens_and_without_content(
    punchlist: Cli, project: Path, collector: Collector
) -> None:
    (project / "rehearsal.yaml").write_text(REHEARSAL)
    done = punchlist(
        *("run", "A private goal", "--model", "rehearsal:rehearsal.yaml", "--mode", "yolo", "--json"),
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"},
    )
    assert done.returncode == 0, done.stderr
    spans = {span.name: span for span in collector.spans}
    turn, worker = spans["invoke_agent supervisor"], spans["invoke_agent researcher"]
    command, delegate = spans["execute_tool run_command"], spans["execute_tool delegate"]
    assert not turn.parent_span_id
    assert {command.parent_span_id, delegate.parent_span_id} == {turn.span_id}
    assert worker.parent_span_id == delegate.span_id
    requests = [span for span in collector.spans if span.name == "chat rehearsal"]
    assert sorted(span.parent_span_id for span in requests) == sorted([turn.span_id, turn.span_id, worker.span_id])
    assert {span.trace_id for span in collector.spans} == {turn.trace_id}
    told = attributes(turn)
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert told["punchlist.turn.end_reason"] == "completed"
    assert sorted(attributes(span)["gen_ai.usage.input_tokens"] for span in requests) == [50, 120, 200]
    points = collector.metrics["gen_ai.client.token.usage"].histogram.data_points
    given = [p for p in points if any(a.value.string_value == "input" for a in p.attributes)]
    assert sum(point.sum for point in given) == 370
    assert sum(p.count for p in collector.metrics["gen_ai.client.operation.duration"].histogram.data_points) == 3
    for content in (b"private", b"sk-secret", b"Found it"):
        assert content not in collector.received
