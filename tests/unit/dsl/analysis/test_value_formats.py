"""Formats of JSON Schema: values of each, and values that are not."""

from __future__ import annotations

import pytest

from noetl.dsl.analysis.value_formats import FORMATS

RIGHT = {
    "date": ["2026-02-28"],
    "time": ["10:00:00Z", "23:59:60+02:00"],
    "date-time": ["2026-01-31T10:00:00Z", "2026-01-31t10:00:00.123456789+01:00"],
    "duration": ["P1D", "PT5M", "P2W", "P1Y2M3DT4H5M6.5S"],
    "email": ["ada@example.org"],
    "idn-email": ["ä@exämple.org"],
    "hostname": ["example.org", "a-1.b"],
    "idn-hostname": ["exämple.org"],
    "ipv4": ["127.0.0.1"],
    "ipv6": ["::1"],
    "uri": ["https://example.org/a?b=c", "urn:isbn:1"],
    "uri-reference": ["/a/b", "#x", ""],
    "iri": ["https://exämple.org/ä"],
    "iri-reference": ["/ä"],
    "uuid": ["12345678-1234-5678-1234-567812345678"],
    "json-pointer": ["", "/a/~0b"],
    "regex": ["^a+$"],
}
WRONG = {
    "date": ["2026-02-30", "20260101", "today"],
    "time": ["10:00", "25:00:00Z", "10:60:00Z"],
    "date-time": ["2026-01-31", "2026-01-31T10:00:00", "2026-13-01T10:00:00Z"],
    "duration": ["P", "PT", "5m", "P1W2D"],
    "email": ["ada", "a b@c"],
    "idn-email": ["@"],
    "hostname": ["-a.org", "a_b", "exämple.org", ""],
    "idn-hostname": ["a b"],
    "ipv4": ["127.0.0.256", "::1"],
    "ipv6": ["127.0.0.1", "g::"],
    "uri": ["example.org", "https://a b", ""],
    "uri-reference": ["a b"],
    "iri": ["/ä"],
    "iri-reference": ["a b"],
    "uuid": ["123", "1234567812345678123456781234567g"],
    "json-pointer": ["a", "/~2"],
    "regex": ["("],
}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_accepts_its_values_and_no_others(name: str) -> None:
    is_valid = FORMATS[name]
    assert [text for text in RIGHT[name] if not is_valid(text)] == []
    assert [text for text in WRONG[name] if is_valid(text)] == []
