"""Frames are cut as the library cuts them, wherever the bytes are split, and what it makes is read by the library."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, SERVER, Protocol, State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from noetl.wire.frames import Cutter, binary

_SIZES = (0, 1, 125, 126, 127, 65_535, 65_536, 70_000)
_frames = st.one_of(
    st.tuples(st.just(Opcode.BINARY), st.binary(max_size=200), st.just(True)),
    st.tuples(st.just(Opcode.BINARY), st.sampled_from(_SIZES).map(bytes), st.just(True)),
    st.tuples(st.just(Opcode.TEXT), st.just(b"words"), st.just(True)),
    st.tuples(st.sampled_from((Opcode.PING, Opcode.PONG)), st.binary(max_size=10), st.just(True)),
)


def reader(*, masked: bool) -> Protocol:
    """The library's half that reads such frames."""
    made: Protocol = ServerProtocol() if masked else ClientProtocol(parse_uri("ws://test"))
    made.state = State.OPEN
    made.parser = Protocol.parse(made)
    next(made.parser)
    return made


def messages(protocol: Protocol) -> list[bytes]:
    data = (event for event in protocol.events_received() if isinstance(event, Frame))
    return [bytes(frame.data) for frame in data if frame.opcode in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT)]


@given(st.lists(_frames, max_size=6), st.lists(st.integers(1, 400), min_size=1), st.booleans())
def test_nothing_is_lost_or_turned_round(
    frames: list[tuple[Opcode, bytes, bool]], steps: list[int], masked: bool
) -> None:
    stream = b"".join(Frame(code, said, fin).serialize(mask=masked) for code, said, fin in frames)
    cutter, long_way, found, at = Cutter(masked=masked), reader(masked=masked), [], 0
    for number in range(len(stream)):
        size = steps[number % len(steps)]
        for message, frame in cutter.cut(stream[at : at + size]):
            if message is None:
                long_way.receive_data(frame)
                found += messages(long_way)
            else:
                found.append(message)
        at += size
        if at >= len(stream):
            break
    assert found == [said for code, said, _ in frames if code in (Opcode.BINARY, Opcode.TEXT)]


def test_a_message_in_parts_is_left_to_the_library() -> None:
    parts = [Frame(Opcode.BINARY, b"a", False), Frame(Opcode.PING, b""), Frame(Opcode.CONT, b"b", True)]
    stream = b"".join(frame.serialize(mask=False) for frame in (*parts, Frame(Opcode.BINARY, b"c")))
    assert [message for message, _ in Cutter(masked=False).cut(stream)] == [None, None, None, b"c"]


def test_a_frame_with_the_wrong_mask_is_left_to_the_library() -> None:
    frame = Frame(Opcode.BINARY, b"a").serialize(mask=True)
    assert Cutter(masked=False).cut(frame) == [(None, frame)]


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("masked", [True, False])
def test_the_library_reads_what_is_sent(size: int, masked: bool) -> None:
    protocol = reader(masked=masked)
    protocol.receive_data(binary(b"x" * size, masked=masked))
    assert messages(protocol) == [b"x" * size]
    assert protocol.side is (SERVER if masked else CLIENT)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("size", _SIZES)
def test_a_message_that_comes_by_itself_is_given_whole(size: int, masked: bool) -> None:
    said = bytes(range(256)) * (size // 256) + bytes(size % 256)
    frame = binary(said, masked=masked)
    cutter = Cutter(masked=masked)
    assert cutter.cut(frame) == cutter.cut(frame) == [(said, frame)]
    wrong = Cutter(masked=not masked)
    assert wrong.cut(frame) == [(None, frame)]
