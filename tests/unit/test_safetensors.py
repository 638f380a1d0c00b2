"""Files of tensors: what is written comes back, and what is wrong with a file is said before anything is loaded."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import safetensors

DTYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"]


def file(header: Any, body: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def one(**changes: Any) -> dict[str, Any]:
    return {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back_bit_for_bit(dtype: str) -> None:
    rng = np.random.default_rng(0)
    shapes = [(), (0,), (3,), (2, 0, 4), (1, 5, 7)]
    tensors = {f"of {shape}": (rng.normal(size=shape) * 50).astype(dtype) for shape in shapes}
    tensors["by columns"] = np.asfortranarray(tensors["of (1, 5, 7)"][0])
    found = safetensors.load(safetensors.save(tensors))
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


def test_names_and_texts_of_every_alphabet() -> None:
    texts = {"format": "pt", "größe": 'a "quoted"\nline \\ \x01'}
    data = safetensors.save({"слой.0": np.ones(2), "": np.zeros(1)}, texts)
    assert safetensors.load(data).keys() == {"слой.0", ""}
    assert safetensors.metadata(data) == texts
    assert safetensors.metadata(safetensors.save({})) == {}


def test_tensors_lie_aligned_and_are_views() -> None:
    tensors = {"a": np.ones(3, bool), "b": np.arange(3.0), "c": np.ones(3, np.float16), "d": np.ones(1, np.float32)}
    data = safetensors.save(tensors)
    (length,) = struct.unpack_from("<Q", data)
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    for name, entry in header.items():
        assert entry["data_offsets"][0] % tensors[name].itemsize == 0, name
    writable = bytearray(data)
    found = safetensors.load(writable)
    writable[-7:] = bytes(7)  # two elements of c, and a: the last ones
    assert found["c"].tolist() == [1, 0, 0]
    assert found["a"].tolist() == [True, True, True], "bools are copied"
    assert not safetensors.load(data)["b"].flags.writeable


def test_a_tensor_that_lies_askew_is_copied() -> None:
    body = b"\1" + np.array([1.5, -2.0], "<f4").tobytes()
    header = {
        "flag": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "w": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
    }
    found = safetensors.load(file(header, body))
    assert found["w"].flags.aligned
    assert found["w"].tolist() == [1.5, -2.0]


def test_bfloat16_rounds_to_nearest_even_and_widens() -> None:
    bits = np.array([0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0xFF800000, 0x7F800001], np.uint32)
    data = safetensors.save({"w": bits.view(np.float32), "i": np.arange(2)}, dtype="BF16")
    found = safetensors.load(data)
    assert found["i"].dtype == np.int64
    assert found["w"].dtype == np.float32
    high = found["w"].view(np.uint32) >> 16
    # one; a tie down, a tie up, above a tie; the largest overflows; -inf; a NaN stays one
    assert [hex(h) for h in high[:6]] == ["0x3f80", "0x3f80", "0x3f82", "0x3f81", "0x7f80", "0xff80"]
    assert np.isnan(found["w"][6])
    again = safetensors.save({"w": found["w"]}, dtype="BF16")
    np.testing.assert_array_equal(safetensors.load(again)["w"], found["w"])
    half = safetensors.load(safetensors.save({"w": np.array([1e9, 0.1])}, dtype="F16"))["w"]
    assert half.dtype == np.float16
    assert half.tolist() == [np.inf, float(np.float16(0.1))]


def test_paths_and_open_files(tmp_path: Path) -> None:
    tensors = {"w": np.arange(6.0).reshape(2, 3)}
    safetensors.save_file(tensors, tmp_path / "a.safetensors", {"k": "v"})
    with open(tmp_path / "b.safetensors", "wb") as opened:
        safetensors.save_file(tensors, opened, {"k": "v"})
    data = (tmp_path / "a.safetensors").read_bytes()
    assert data == safetensors.save(tensors, {"k": "v"}) == (tmp_path / "b.safetensors").read_bytes()
    assert safetensors.load_file is safetensors.load
    for source in (str(tmp_path / "a.safetensors"), tmp_path / "b.safetensors", io.BytesIO(data), memoryview(data)):
        np.testing.assert_array_equal(safetensors.load(source)["w"], tensors["w"])
    with pytest.raises(tg.InputError, match="bytes, a path or a file open for reading bytes, got StringIO"):
        safetensors.load(io.StringIO("x"))  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        safetensors.load("nowhere.safetensors")


BAD: list[tuple[bytes, str]] = [
    (b"", "it has 0 bytes, and its first 8 give the length"),
    (b"1234567", "it has 7 bytes"),
    (file(one(), bytes(8), 2**63), "its header would have 9,223,372,036,854,775,808 bytes; 100,000,000 are allowed"),
    (file(one(), b"", 500), "it is cut off: its header has 500 bytes, and 61 are there"),
    (file(b""), "does not start with '{'"),
    (file(b" {}"), "does not start with '{'"),
    (file(b"{]"), "its header is not JSON"),
    (file(b'{"w": 1} {}'), "its header is not JSON"),
    (file(b'{"\xff": 1}'), "its header is not JSON: 'utf-8' codec"),
    (file(b"{" + b'"a":{' * 100_000), "nested too deeply"),
    (file(b'{"w":' + b"[" * 100_000), "nested too deeply"),
    (file(b'{"w": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 8]}}', bytes(8)), "NaN is no number there"),
    (file(b'{"w": {"dtype": "F32", "shape": [-Infinity], "data_offsets": [0, 8]}}', bytes(8)), "-Infinity is no"),
    (file(b'{"w": ' + b"9" * 5000 + b"}"), "its header is not JSON"),
    (file(b'{"w": 1, "v": 2, "w": 3}'), "has 'w' twice"),
    (file(b'{"w": {"dtype": "F32", "dtype": "I8", "shape": [2], "data_offsets": [0, 8]}}'), "has 'dtype' twice"),
    (file({"__metadata__": {"a": 1}}), "__metadata__ are not texts"),
    (file({"__metadata__": "a"}), "__metadata__ are not texts"),
    (file({"w": 1}), "'w' has no dtype, shape and data_offsets"),
    (file({"w": {"dtype": "F32", "shape": [2]}}), "'w' has no dtype, shape and data_offsets"),
    (file(one(dtype="C64"), bytes(8)), "'w' has dtype 'C64', which is none of BOOL, U8"),
    (file(one(dtype=["F32"]), bytes(8)), r"'w' has dtype \['F32'\]"),
    (file(one(shape=[-2]), bytes(8)), r"the shape \[-2\], which is no list of whole numbers from 0"),
    (file(one(shape=[2.0]), bytes(8)), r"the shape \[2.0\]"),
    (file(one(shape=[True, 2]), bytes(8)), r"the shape \[True, 2\]"),
    (file(one(shape="2"), bytes(8)), "the shape '2'"),
    (file(one(shape=[2**62, 4]), bytes(8)), "a shape that is too large for an array"),
    (file(one(shape=[2**62, 4, 0], data_offsets=[0, 0])), "a shape that is too large for an array"),
    (file(one(shape=[1] * 65, data_offsets=[0, 4]), bytes(4)), "a shape that is too large for an array"),
    (file(one(shape=[3]), bytes(8)), r"'w' is F32\[3\], 12 bytes, but its data_offsets \[0, 8\] hold 8"),
    (file(one(data_offsets=[8, 0]), bytes(8)), r"hold -8"),
    (file(one(data_offsets=[-8, 0]), bytes(8)), r"the data_offsets \[-8, 0\], which are no two whole numbers"),
    (file(one(data_offsets=[0, 4, 8]), bytes(8)), "which are no two whole numbers"),
    (file(one(data_offsets=[0, 2**63]), bytes(8)), "which are no two whole numbers"),
    (file(one(data_offsets=[4, 12]), bytes(12)), "'w' starts at byte 4, but what lies before it ends at 0"),
    (file(one(data_offsets=[10**12, 10**12 + 8]), bytes(8)), "'w' starts at byte 1,000,000,000,000, but"),
    (file({**one(), "v": one(data_offsets=[4, 12])["w"]}, bytes(12)), "'v' starts at byte 4, .* ends at 8"),
    (file({**one(), "v": one()["w"]}, bytes(8)), "'v' starts at byte 0, but what lies before it ends at 8"),
    (file(one(), bytes(7)), "it is cut off: its tensors have 8 bytes, and 7 are there"),
    (file(one(), bytes(9)), "1 bytes follow its last tensor, which belong to none"),
    (file({}, b"x"), "1 bytes follow its last tensor"),
    (b"PK\x03\x04" + bytes(60), r"it is a zip, as PyTorch's \.pt files are"),
]


@pytest.mark.parametrize(("data", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_is_wrong_with_a_file_is_said(data: bytes, message: str) -> None:
    with pytest.raises(tg.CheckpointError, match=f"nothing was loaded: .*({message})"):
        safetensors.load(data)


def test_no_changed_byte_and_no_cut_raises_anything_else() -> None:
    data = safetensors.save({"w": np.arange(3.0), "flag": np.ones((2, 1), bool)}, {"a": "b"})
    rng = np.random.default_rng(0)
    refused = 0
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] = rng.integers(256)
        for candidate in (bytes(changed), data[:at]):
            try:
                safetensors.load(candidate)
            except tg.CheckpointError:
                refused += 1
    assert refused > len(data), "every cut is refused, and most changes of the header"


def test_what_cannot_be_saved_is_said() -> None:
    cases: list[tuple[dict[Any, Any], dict[str, Any], str]] = [
        ({1: np.ones(1)}, {}, "a tensor's name is a string other than '__metadata__', got 1"),
        ({"__metadata__": np.ones(1)}, {}, "got '__metadata__'"),
        ({"w": np.array(["a"])}, {}, "'w' has dtype <U1; floats, integers and bools can be saved"),
        ({"w": np.ones(1, complex)}, {}, "'w' has dtype complex128"),
        ({"w": [[1.0], [1.0, 2.0]]}, {}, "'w' is not an array"),
        ({"w\ud800": np.ones(1)}, {}, "is not Unicode"),
        ({"w": np.ones(1)}, {"metadata": {"a": 1}}, "metadata are texts by name, got 'a': 1"),
        ({"w": np.ones(1)}, {"dtype": "F8"}, "written as 'F64', 'F32', 'F16' or 'BF16', not as 'F8'"),
    ]
    for tensors, options, message in cases:
        with pytest.raises(tg.InputError, match=message):
            safetensors.save(tensors, **options)
