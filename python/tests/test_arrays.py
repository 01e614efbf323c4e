"""Put and get take and give arrays of any dtype and any strides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ayre
from conftest import Loop

DTYPES = st.one_of(
    hnp.integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(endianness="?"),
    hnp.datetime64_dtypes(endianness="?"),
    hnp.boolean_dtypes(),
    hnp.byte_string_dtypes(min_len=1, max_len=5),
    hnp.array_dtypes(hnp.integer_dtypes(), max_size=3),
)


class Pattern:
    """A way to choose elements of an array: in order, backwards, apart, or by columns."""

    def __init__(self, draw: st.DrawFn) -> None:
        """Draw the type and the shape of the array, and the pattern."""
        self.dtype = draw(DTYPES)
        self.shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=12))
        index = draw(hnp.basic_indices(self.shape, allow_newaxis=True, allow_ellipsis=False))
        self.index = (*index, ...) if isinstance(index, tuple) else (index, ...)
        self.is_turned = draw(st.booleans())
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def __repr__(self) -> str:
        """Say what was drawn."""
        return f"Pattern({self.dtype}, {self.shape}, {self.index}, {self.is_turned})"

    def whole(self) -> np.ndarray:
        """Give an array of random bytes."""
        count = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        content = self.random.integers(0, 256, count, dtype=np.uint8)
        return np.frombuffer(content.tobytes(), dtype=self.dtype).reshape(self.shape).copy()

    def choose(self, whole: np.ndarray) -> np.ndarray:
        """Give the chosen elements, as a view."""
        part = whole[self.index]
        return part.transpose() if self.is_turned else part


PATTERNS = st.composite(Pattern)()


EACH = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@EACH
@given(pattern=PATTERNS)
def test_a_put_stores_the_elements_in_order(loop: Loop, pattern: Pattern) -> None:
    array = pattern.choose(pattern.whole())
    loop.region.write(0, bytes(len(loop.region)))
    loop.port.put(loop.remote, 8, array)
    loop.port.flush(loop.own)
    expected = bytes(8) + array.tobytes()
    assert loop.region.read(0, len(expected) + 8) == expected + bytes(8)


@EACH
@given(pattern=PATTERNS)
def test_a_get_fills_the_elements_and_nothing_else(loop: Loop, pattern: Pattern) -> None:
    source, whole = pattern.choose(pattern.whole()), pattern.whole()
    expected = whole.copy()
    pattern.choose(expected)[...] = source
    loop.region.write(8, source.tobytes())
    loop.port.get(loop.remote, 8, pattern.choose(whole))
    assert whole.tobytes() == expected.tobytes()


@EACH
@given(pattern=PATTERNS)
def test_a_message_has_the_elements_in_order(loop: Loop, pattern: Pattern) -> None:
    array = pattern.choose(pattern.whole())
    if 1 <= array.nbytes <= 1024:
        loop.port.send(loop.own, array)
        assert loop.port.recv(10.0).data == array.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_and_columns_arrive(loop: Loop, order: str) -> None:
    whole = np.asarray(np.arange(40 * 50, dtype=">i4").reshape(40, 50), order=order)
    part = whole[3:30, 5:45]
    loop.port.put(loop.remote, 0, part)
    loop.port.flush(loop.own)
    assert (loop.region.array(part.shape, ">i4") == part).all()
    back = np.zeros_like(whole)
    loop.port.get(loop.remote, 0, back[3:30, 5:45])
    assert (back[3:30, 5:45] == part).all()
    assert back.sum() == part.sum()


def test_elements_may_lie_on_each_other(loop: Loop) -> None:
    for array in (
        np.broadcast_to(np.arange(16.0), (5, 16)),
        np.lib.stride_tricks.sliding_window_view(np.arange(40.0), 16),
    ):
        loop.port.put(loop.remote, 0, array)
        loop.port.flush(loop.own)
        assert (loop.region.array(array.shape) == array).all()
    whole = np.zeros(40)
    windows = np.lib.stride_tricks.sliding_window_view(whole, 16, writeable=True)
    loop.region.array(windows.shape)[:] = 7.0
    loop.port.get(loop.remote, 0, windows)
    assert (whole == 7.0).all()


def test_remote_rows_are_chosen(loop: Loop) -> None:
    rows = ayre.Strided(16, 4, 16, 64)
    loop.port.put(loop.remote, 0, bytes(range(64)), rows=rows)
    loop.port.flush(loop.own)
    matrix = loop.region.array((4, 64), "u1")
    assert (matrix[:, :16].ravel() == range(64)).all()
    assert not matrix[:, 16:].any()
    back = bytearray(64)
    loop.port.get(loop.remote, 0, back, rows=rows)
    assert back == bytes(range(64))


def test_regions_are_buffers_that_keep_their_memory() -> None:
    port = ayre.Port()
    region = port.alloc(4096)
    array = region.array((16, 32))
    flat = np.frombuffer(region, dtype="u1")
    array[1, 1] = 1.0
    assert flat[33 * 8 : 34 * 8].tobytes() == np.float64(1.0).tobytes()
    with pytest.raises(BufferError, match="views"):
        port.deregister(region)
    port.close()
    del region, array
    flat[:] = 7
    assert flat.sum() == 7 * 4096


def test_a_region_without_views_is_deregistered(loop: Loop) -> None:
    array = loop.region.array(8)
    view = memoryview(loop.region)[8:16]
    del array
    with pytest.raises(BufferError):
        loop.port.deregister(loop.region)
    view.release()
    loop.port.deregister(loop.region)
    with pytest.raises(ayre.FaultError):
        loop.port.get(loop.remote, 0, bytearray(8))


def test_parts_of_regions_are_local_ends(loop: Loop) -> None:
    local = loop.port.alloc(4096)
    local.write(100, b"from here")
    loop.port.put(loop.remote, 0, local.slice(100, 109))
    loop.port.flush(loop.own)
    assert loop.region.read(0, 9) == b"from here"
    loop.port.get(loop.remote, 0, local.slice(0, 9))
    loop.port.flush(loop.own)
    assert local.read(0, 9) == b"from here"


class Tensor:
    """An array of another library, which has no buffer."""

    def __init__(self, array: np.ndarray) -> None:
        """Wrap the array."""
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        """Give the array by the protocol."""
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Say that it is in the processor's memory."""
        return self.array.__dlpack_device__()


def test_tensors_of_other_libraries_are_taken(loop: Loop) -> None:
    loop.port.put(loop.remote, 0, Tensor(np.arange(12.0).reshape(3, 4)))
    loop.port.flush(loop.own)
    assert (loop.region.array(12) == range(12)).all()
    into = np.zeros(12)
    if np.from_dlpack(Tensor(into)).flags.writeable:
        loop.port.get(loop.remote, 0, Tensor(into))
        assert (into == range(12)).all()
    else:  # numpy before 2.1
        with pytest.raises(BufferError):
            loop.port.get(loop.remote, 0, Tensor(into))


@pytest.mark.parametrize(
    "thing",
    [
        5,
        None,
        "text",
        [1, 2],
        object(),
        np.array([object()]),
        np.array([(1, None)], dtype=[("count", "i4"), ("thing", object)]),
        np.array([(0, None)], dtype=[("when", "M8[s]"), ("thing", object)]),
    ],
    ids=str,
)
def test_what_has_no_bytes_is_a_type_error(loop: Loop, thing: object) -> None:
    for call in (loop.port.put, loop.port.get):
        with pytest.raises(TypeError):
            call(loop.remote, 0, thing)  # type: ignore[operator]
    with pytest.raises(TypeError):
        loop.port.send(loop.own, thing)  # type: ignore[arg-type]


def test_a_field_with_the_name_of_objects_is_none(loop: Loop) -> None:
    loop.port.put(loop.remote, 0, np.zeros(3, dtype=[("OOO", "f8"), ("O", "i4")]))


def test_a_get_into_what_is_read_only_is_refused(loop: Loop) -> None:
    fixed = np.zeros(8)
    fixed.flags.writeable = False
    for into in (b"12345678", fixed, memoryview(bytearray(8)).toreadonly()):
        with pytest.raises(BufferError):
            loop.port.get(loop.remote, 0, into)
    assert not fixed.any()
