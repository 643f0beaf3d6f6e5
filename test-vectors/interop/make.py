"""Makes the vectors of this folder that Python's tools write, each with what the tool itself reads back.

    python -m venv venv && venv/bin/pip install pyarrow==26.0.1 polars==2.1.0
    venv/bin/python make.py

Rows are those of the tool's own reader, in the form of `rows.json` (see ../README.md). What Eider keeps otherwise than
the tool does (nanoseconds, that are cut to microseconds) is written by hand here.
"""

import base64
import datetime
import decimal
import json
import os
import struct
import uuid

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

D = decimal.Decimal
UTC = datetime.timezone.utc
PYARROW = f"pyarrow {pa.__version__}"
POLARS = f"polars {pl.__version__}"


def cell(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(value), int(value) if value.is_integer() else value)
    if isinstance(value, D):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        return value.strftime("%H:%M:%S.%f")
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        if value and all(isinstance(pair, tuple) for pair in value):
            pairs = [[cell(k), cell(v)] for k, v in value]
            return dict(pairs) if isinstance(value[0][0], str) else pairs
        return [cell(item) for item in value]
    if isinstance(value, dict):
        return {key: cell(item) for key, item in value.items()}
    raise TypeError(type(value))


def rows_of(table):
    return [{name: cell(value) for name, value in row.items()} for row in table.to_pylist()]


def dump(path, value):
    with open(path, "w", newline="\n") as out:
        if isinstance(value, list):
            lines = ",\n ".join(json.dumps(row, ensure_ascii=False) for row in value)
            out.write(f"[{lines}]\n" if value else "[]\n")
        else:
            out.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def vector(name, about, files, schema=None, rows=None, expected=None, written=PYARROW, case=None, error=None):
    """One folder. `files` are written already by `path(name, …)`."""
    head = {"about": about, "written": written}
    if error is None:
        head["expected"] = expected or written
    if case:
        head["case"] = case
    head["inputs"] = [{"file": file, "format": "parquet" if file.endswith(".parquet") else "arrow"} for file in files]
    if error is not None:
        head["error"] = error
    dump(f"{name}/vector.json", head)
    if error is None:
        dump(f"{name}/schema.json", schema)
        dump(f"{name}/rows.json", rows)


def path(name, file):
    os.makedirs(name, exist_ok=True)
    return f"{name}/{file}"


def uuids(*values):
    return pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([None if v is None else uuid.UUID(v).bytes for v in values], pa.binary(16))
    )


def types_table():
    """Each type with its ends and a null."""
    t = datetime.datetime(2031, 2, 27, 23, 6, 40, 123456)
    first = datetime.datetime(1, 1, 1)
    before = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    return pa.table(
        {
            "b": pa.array([True, None, False]),
            "i8": pa.array([-128, None, 127], pa.int8()),
            "i16": pa.array([-32768, None, 32767], pa.int16()),
            "i32": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
            "i64": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
            "u8": pa.array([0, None, 255], pa.uint8()),
            "u16": pa.array([0, None, 65535], pa.uint16()),
            "u32": pa.array([0, None, 2**32 - 1], pa.uint32()),
            "u64": pa.array([2**63, None, 2**64 - 1], pa.uint64()),
            "f16": pa.array([1.5, None, float("-inf")], pa.float16()),
            "f32": pa.array([0.5, None, float("nan")], pa.float32()),
            "f64": pa.array([0.1, None, float("inf")], pa.float64()),
            "d9": pa.array([D("-70.05"), None, D("9999999.99")], pa.decimal128(9, 2)),
            "d18": pa.array([D("-1.0000"), None, D("99999999999999.9999")], pa.decimal128(18, 4)),
            "d29": pa.array([D("-0.01"), None, D("123456789012345678901234567.89")], pa.decimal128(29, 2)),
            "d38": pa.array([D("-" + "9" * 38), None, D("9" * 38)], pa.decimal128(38, 0)),
            "s": pa.array(["", None, "ñ𝔘\0\ufeff"]),
            "ls": pa.array(["large", None, ""], pa.large_string()),
            "sv": pa.array(["short", None, "longer than twelve bytes, so not inline"], pa.string_view()),
            "bin": pa.array([b"\x00\xff", None, b""], pa.binary()),
            "lbin": pa.array([b"\x01", None, b""], pa.large_binary()),
            "fsb": pa.array([b"abc", None, b"\x00\x00\x00"], pa.binary(3)),
            "uuid": uuids("f79c3e09-677c-4bbd-a479-3f349cb785e7", None, "00000000-0000-0000-0000-000000000000"),
            "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[]"])),
            "day": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], pa.date32()),
            "d64": pa.array([datetime.date(1969, 12, 31), None, datetime.date(2031, 2, 27)], pa.date64()),
            "t_ms": pa.array([datetime.time(23, 59, 59, 999000), None, datetime.time(0)], pa.time32("ms")),
            "t_us": pa.array([datetime.time(23, 59, 59, 999999), None, datetime.time(0)], pa.time64("us")),
            "t_ns": pa.array([datetime.time(23, 59, 59, 999999), None, datetime.time(0)], pa.time64("ns")),
            "ts_ms": pa.array([t.replace(microsecond=123000), None, first], pa.timestamp("ms")),
            "ts_us": pa.array([t, None, before], pa.timestamp("us")),
            "ts_ns": pa.array([t, None, before], pa.timestamp("ns")),
            "tz_ms": pa.array([t.replace(microsecond=123000, tzinfo=UTC), None, first.replace(tzinfo=UTC)], pa.timestamp("ms", "UTC")),
            "tz_us": pa.array([t.replace(tzinfo=UTC), None, before.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "dict": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), pa.array(["u", "v"])),
        }
    )


TYPES = {
    "b": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float32", "f32": "float32", "f64": "float64",
    "d9": "decimal(9,2)", "d18": "decimal(18,4)", "d29": "decimal(29,2)", "d38": "decimal(38,0)",
    "s": "string", "ls": "string", "sv": "string", "bin": "binary", "lbin": "binary", "fsb": "fixed(3)",
    "uuid": "uuid", "json": "json", "day": "date", "d64": "date", "t_ms": "time", "t_us": "time", "t_ns": "time",
    "ts_ms": "timestamp", "ts_us": "timestamp", "ts_ns": "timestamp", "tz_ms": "timestamptz", "tz_us": "timestamptz",
    "dict": "string",
}  # fmt: skip


def types_vectors():
    table = types_table()
    rows = rows_of(table)
    parquet = {
        "types-v1": dict(version="2.6", data_page_version="1.0", compression="none"),
        "types-v2-pages": dict(version="2.6", data_page_version="2.0", compression="zstd", use_dictionary=False),
    }
    for name, options in parquet.items():
        # Parquet by itself has no type for the length of fixed bytes that DuckDB keeps; our import takes them as binary.
        pq.write_table(table, path(name, "input.parquet"), **options)
        vector(name, f"every type in Parquet: {options}", ["input.parquet"], {**TYPES, "fsb": "binary"}, rows)
    # Arrow keeps what Parquet has no place for.
    more = table.append_column("t_s", pa.array([datetime.time(23, 59, 59), None, datetime.time(0)], pa.time32("s")))
    more = more.append_column("ts_s", pa.array([datetime.datetime(2031, 2, 27), None, datetime.datetime(1, 1, 1)], pa.timestamp("s")))
    more = more.append_column("d256", pa.array([D("-1.50"), None, D("9" * 36 + ".99")], pa.decimal256(38, 2)))
    more = more.append_column("binv", pa.array([b"\x01" * 20, None, b""], pa.binary_view()))
    schema = {**TYPES, "t_s": "time", "ts_s": "timestamp", "d256": "decimal(38,2)", "binv": "binary"}
    for name, codec, stream in [("arrow-file", None, False), ("arrow-stream-lz4", "lz4", True), ("arrow-file-zstd", "zstd", False)]:
        file = "input.arrows" if stream else "input.arrow"
        new = pa.ipc.new_stream if stream else pa.ipc.new_file
        with pa.OSFile(path(name, file), "wb") as sink:
            with new(sink, more.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
                for batch in more.to_batches(max_chunksize=2):
                    writer.write_batch(batch)
        vector(name, f"every type in an Arrow IPC {file}, compression {codec}", [file], schema, rows_of(more))


NESTED = pa.schema(
    {
        "l": pa.list_(pa.int64()),
        "ll": pa.list_(pa.list_(pa.string())),
        "fsl": pa.list_(pa.int8(), 2),
        "st": pa.struct({"x": pa.int32(), "y": pa.list_(pa.string()), "z": pa.struct({"w": pa.bool_()})}),
        "ls": pa.list_(pa.struct({"k": pa.string(), "v": pa.float64()})),
        "m": pa.map_(pa.string(), pa.int64()),
        "mi": pa.map_(pa.int32(), pa.list_(pa.string())),
    }
)
NESTED_TYPES = {
    "l": "list<int64>",
    "ll": "list<list<string>>",
    "fsl": "list<int8>",
    "st": "struct<x: int32, y: list<string>, z: struct<w: bool>>",
    "ls": "list<struct<k: string, v: float64>>",
    "m": "map<string,int64>",
    "mi": "map<int32,list<string>>",
}


def nested_vectors():
    columns = {
        "l": [[1, None, 2**60], None, [], [None], [3]],
        "ll": [[["a"], None, []], None, [], [[None]], [["b", "c"], ["d"]]],
        "fsl": [[1, 2], None, [3, None], [None, None], [-1, -2]],
        "st": [
            {"x": 1, "y": ["a", None], "z": {"w": True}},
            None,
            {"x": None, "y": None, "z": None},
            {"x": 2, "y": [], "z": {"w": None}},
            {"x": 3, "y": [""], "z": {"w": False}},
        ],
        "ls": [[{"k": "a", "v": 0.5}, None, {"k": None, "v": None}], None, [], [None], [{"k": "", "v": -1.5}]],
        "m": [[("a", 1), ("b", None)], None, [], [("", 0)], [("z", -1)]],
        "mi": [[(1, ["a"]), (2, None), (3, [])], None, [], [(-1, [None])], [(0, ["x", "y"])]],
    }
    # By hand, as the script has them: maps with text keys are objects, others are pairs.
    rows = []
    for i in range(5):
        row = {name: cell(values[i]) for name, values in columns.items() if name not in ("m", "mi")}
        row["m"] = None if columns["m"][i] is None else {k: cell(v) for k, v in columns["m"][i]}
        row["mi"] = None if columns["mi"][i] is None else [[k, cell(v)] for k, v in columns["mi"][i]]
        rows.append(row)
    table = pa.table(columns, NESTED)
    for name, options in {
        "nested-v1": dict(data_page_version="1.0", compression="snappy"),
        "nested-v2": dict(data_page_version="2.0", compression="gzip", row_group_size=2),
        "nested-item-lists": dict(use_compliant_nested_type=False, compression="none"),
    }.items():
        pq.write_table(table, path(name, "input.parquet"), **options)
        vector(name, f"nested types with null, empty and missing at each level: {options}", ["input.parquet"], NESTED_TYPES, rows, "by hand")
    with pa.OSFile(path("nested-arrow", "input.arrows"), "wb") as sink, pa.ipc.new_stream(sink, NESTED) as writer:
        # Slices: offsets that do not begin at zero.
        writer.write_table(table.slice(0, 2))
        writer.write_table(table.slice(2, 3))
    vector("nested-arrow", "nested types in an Arrow stream of sliced batches", ["input.arrows"], NESTED_TYPES, rows, "by hand")


ENCODED = {"i32": "int32", "i64": "int64", "ts": "timestamptz", "f32": "float32", "f64": "float64", "d": "decimal(10,3)", "s": "string", "b": "bool"}


def encoded_table(rows=130):
    """Values that each encoding has to work for: steps up and down, shared prefixes, nulls in runs."""
    base = datetime.datetime(2031, 2, 27, tzinfo=UTC)
    every = lambda n, step, make: [None if n_ % step == step - 1 else make(n_) for n_ in range(n)]
    return pa.table(
        {
            "i32": pa.array(every(rows, 7, lambda n: (n * 7919) % 100_003 - 50_000), pa.int32()),
            "i64": pa.array(every(rows, 11, lambda n: n**9 * 1_000_003 % 2**63 - 2**62), pa.int64()),
            "ts": pa.array(every(rows, 13, lambda n: base + datetime.timedelta(microseconds=n * n * 12_345)), pa.timestamp("us", "UTC")),
            "f32": pa.array(every(rows, 5, lambda n: n / 8 - 10), pa.float32()),
            "f64": pa.array(every(rows, 6, lambda n: (n - 65) / 16), pa.float64()),
            "d": pa.array(every(rows, 8, lambda n: D(n - 65) * D("12.345")), pa.decimal128(10, 3)),
            "s": pa.array(every(rows, 9, lambda n: f"prefix/{n // 10:03d}/{'é' * (n % 4)}{n}")),
            "b": pa.array(every(rows, 10, lambda n: n % 3 == 0)),
        }
    )


def encoding_vectors():
    table = encoded_table()
    rows = rows_of(table)
    delta = {"i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED", "ts": "DELTA_BINARY_PACKED", "f32": "PLAIN", "f64": "PLAIN", "d": "PLAIN"}
    split = {"i32": "PLAIN", "i64": "PLAIN", "ts": "PLAIN", "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT", "d": "PLAIN"}
    chosen = {
        "delta-length": {**delta, "s": "DELTA_LENGTH_BYTE_ARRAY", "b": "RLE"},
        "delta-byte-array": {**delta, "s": "DELTA_BYTE_ARRAY", "b": "PLAIN"},
        "byte-stream-split": {**split, "s": "PLAIN", "b": "PLAIN"},
    }
    for name, encodings in chosen.items():
        for version in ("1.0", "2.0"):
            folder = f"{name}-v{version[0]}"
            pq.write_table(
                table, path(folder, "input.parquet"), use_dictionary=False, column_encoding=encodings,
                data_page_version=version, data_page_size=700, write_batch_size=50, compression="none",
            )  # fmt: skip
            vector(folder, f"{name} over several pages, data page version {version}", ["input.parquet"], ENCODED, rows)
    whole = table.select(["i32", "i64", "d"])
    pq.write_table(whole, path("byte-stream-split-integers", "input.parquet"), use_dictionary=False, use_byte_stream_split=True, compression="none")
    # Parquet 2.11 allows it for integers and fixed bytes; DuckDB 1.5 decodes it for floats only.
    unreadable = {"name": "InvalidInputError", "code": "bad_parquet"}
    vector("byte-stream-split-integers", "an encoding that the import does not know is a clear error", ["input.parquet"], error=unreadable)
    pq.write_table(table, path("dictionary-overflow", "input.parquet"), dictionary_pagesize_limit=500, data_page_size=500, write_batch_size=20, compression="none")
    vector("dictionary-overflow", "a dictionary given up in mid-column: pages with it, then pages without", ["input.parquet"], ENCODED, rows)
    for codec in ("snappy", "gzip", "brotli", "zstd", "lz4"):
        # pyarrow's "lz4" is LZ4_RAW, codec 7.
        folder = f"codec-{'lz4-raw' if codec == 'lz4' else codec}"
        pq.write_table(table, path(folder, "input.parquet"), compression=codec)
        vector(folder, f"pages compressed by {codec}", ["input.parquet"], ENCODED, rows, case="D26" if codec == "lz4" else None)
    lz4_hadoop(table)


def lz4_hadoop(table):
    """D26: codec 5 in Hadoop's framing: per block its size and its compressed size, big-endian, then raw LZ4.

    pyarrow reads this and no longer writes it, so the pages of a plain file are compressed here, by one block each. DuckDB refuses it.
    """
    one = table.select(["s"])
    plain = path("codec-lz4-hadoop", "plain.parquet")
    pq.write_table(one, plain, compression="none", use_dictionary=False, write_statistics=False, data_page_version="1.0")
    data = open(plain, "rb").read()
    os.remove(plain)
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(0)
    start, end = column.data_page_offset, column.data_page_offset + column.total_compressed_size
    # The header is Thrift's compact protocol: rewritten below with the new sizes.
    header, body = split_page(data[start:end])
    packed = pa.Codec("lz4_raw").compress(pa.py_buffer(body), asbytes=True)
    framed = struct.pack(">II", len(body), len(packed)) + packed
    new_header = replace_second(header, b"\x15", len(body), len(framed))
    footer_size = struct.unpack("<I", data[-8:-4])[0]
    footer = data[-8 - footer_size : -8]
    footer = rewrite_codec(footer, one.num_rows, len(header) + len(body), len(new_header) + len(framed))
    out = data[:start] + new_header + framed + footer + struct.pack("<I", len(footer)) + b"PAR1"
    target = path("codec-lz4-hadoop", "input.parquet")
    with open(target, "wb") as file:
        file.write(out)
    read = pq.read_table(target)
    assert pq.ParquetFile(target).metadata.row_group(0).column(0).compression not in ("UNCOMPRESSED", "LZ4")
    assert read.equals(one)
    refused = {"name": "InvalidInputError", "code": "bad_parquet"}
    vector("codec-lz4-hadoop", "codec 5, whose framing is ambiguous, is a clear error", ["input.parquet"], case="D26", error=refused)


def zigzag(value):
    return (value << 1) ^ (value >> 63)


def varint(value):
    out = b""
    while True:
        byte, value = value & 127, value >> 7
        if value == 0:
            return out + bytes([byte])
        out += bytes([byte | 128])


def split_page(page):
    """A data page's header and body. The header begins with three i32 fields: type, size, compressed size."""
    at = 0
    for _ in range(3):
        assert page[at] == 0x15
        start = at = at + 1
        while page[at] & 128:
            at += 1
        at += 1
    size = sum((byte & 127) << (7 * i) for i, byte in enumerate(page[start:at])) >> 1
    return page[: len(page) - size], page[len(page) - size :]


def replace_second(text, kind, old, new):
    """The second of two equal sizes, which is the compressed one, gets its new value."""
    field = kind + varint(zigzag(old))
    second = text.index(field, text.index(field) + len(field))
    return text[:second] + kind + varint(zigzag(new)) + text[second + len(field) :]


def rewrite_codec(footer, values, total, new_total):
    """In ColumnMetaData: field 4, the codec (i32), which the number of values (i64) follows; then the total sizes (i64)."""
    follows = b"\x16" + varint(zigzag(values))
    at = footer.index(b"\x15\x00" + follows)
    return footer[:at] + b"\x15" + varint(zigzag(5)) + replace_second(footer[at + 2 :], b"\x16", total, new_total)


def time_vectors():
    """D20: one instant in three units, and a null whose slot holds garbage."""
    micros = 1_930_000_000_123_456
    nulls = pa.Array.from_buffers(
        pa.timestamp("ms", "UTC"), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(struct.pack("<qq", 1_930_000_000_123, 2**63 - 1))]
    )
    units = {
        "a-ms": (nulls, dict(coerce_timestamps=None)),
        "b-us": (pa.array([micros], pa.timestamp("us", "UTC")), {}),
        "c-ns": (pa.array([micros * 1000 + 789], pa.timestamp("ns", "UTC")), dict(version="2.6")),
    }
    rows = [
        {"ts": "2031-02-27T23:06:40.123000Z"},
        {"ts": None},
        {"ts": "2031-02-27T23:06:40.123456Z"},
        {"ts": "2031-02-27T23:06:40.123456Z"},
    ]
    for kind in ("parquet", "arrow"):
        name = f"units-{kind}"
        files = []
        for unit, (array, options) in units.items():
            file = f"{unit}.{kind}"
            files.append(file)
            table = pa.table({"ts": array})
            if kind == "parquet":
                pq.write_table(table, path(name, file), **options)
            else:
                with pa.OSFile(path(name, file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
        vector(name, "one instant in milliseconds, microseconds and nanoseconds, and a null over garbage", files, {"ts": "timestamptz"}, rows, "by hand", case="D20")
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime.datetime(2031, 2, 27, 23, 6, 40, 123456), datetime.datetime(1700, 1, 1)]
    table = pa.table({"t": pa.array(moments, pa.timestamp("ns"))})
    pq.write_table(table, path("int96", "input.parquet"), use_deprecated_int96_timestamps=True)
    # An INT96 has no zone: an instant by convention (Spark and Impala write UTC), which DuckDB takes as a local time.
    vector("int96", "INT96 timestamps, before 1970 too", ["input.parquet"], {"t": "timestamp"}, rows_of(table))


def decimal_vectors():
    """D23, in each physical type."""
    values = {
        "wide": ([D("-70.05"), D("-0.01"), D("123456789012345678901234567.89"), None], 29, 2),
        "mid": ([D("-1.0000"), D("0.0001"), D("-99999999999999.9999"), None], 18, 4),
        "small": ([D("-0.1"), D("0.0"), D("99999999.9"), None], 9, 1),
        "nines": ([D("-" + "9" * 28 + "." + "9" * 10), D("0E-10"), D("9" * 28 + "." + "9" * 10), None], 38, 10),
    }
    table = pa.table({name: pa.array(v, pa.decimal128(p, s)) for name, (v, p, s) in values.items()})
    schema = {name: f"decimal({p},{s})" for name, (_, p, s) in values.items()}
    for name, options in {"decimals-bytes": {}, "decimals-integers": dict(store_decimal_as_integer=True)}.items():
        pq.write_table(table, path(name, "input.parquet"), **options)
        vector(name, f"negative and wide decimals, {'in INT32 and INT64 where they fit' if options else 'as fixed bytes'}", ["input.parquet"], schema, rows_of(table), case="D23")
    wide = pa.table({"d": pa.array([D("1" * 39)], pa.decimal256(39, 0))})
    pq.write_table(wide, path("decimal-39", "input.parquet"))
    vector("decimal-39", "a decimal of 39 digits, which no column takes", ["input.parquet"], case="D23", error={"name": "SchemaError", "code": "unsupported_type"})


def empty_vectors():
    """D21"""
    schema = pa.schema({"i": pa.int64(), "s": pa.string()})
    pq.write_table(schema.empty_table(), path("zero-rows", "input.parquet"))
    vector("zero-rows", "a file without rows has columns all the same", ["input.parquet"], {"i": "int64", "s": "string"}, [], "by hand", case="D21")
    with pq.ParquetWriter(path("row-groups-3-0-2", "input.parquet"), schema) as writer:
        for group in ([1, 2, 3], [], [4, 5]):
            writer.write_table(pa.table({"i": group, "s": [str(i) for i in group]}, schema))
    sizes = pq.ParquetFile("row-groups-3-0-2/input.parquet").metadata
    assert [sizes.row_group(i).num_rows for i in range(sizes.num_row_groups)] == [3, 0, 2]
    rows = [{"i": i, "s": str(i)} for i in range(1, 6)]
    vector("row-groups-3-0-2", "row groups of 3, 0 and 2 rows", ["input.parquet"], {"i": "int64", "s": "string"}, rows, "by hand", case="D21")
    pq.write_table(pa.table({"i": [1, 2]}).select([]), path("zero-columns", "input.parquet"))
    vector("zero-columns", "rows without columns", ["input.parquet"], case="D21", error={"name": "InvalidInputError", "code": "no_columns"})
    for name, batches in {"arrow-zero-rows": [], "arrow-batches-3-0-2": [[1, 2, 3], [], [4, 5]]}.items():
        with pa.OSFile(path(name, "input.arrows"), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            for group in batches:
                writer.write_batch(pa.record_batch({"i": pa.array(group, pa.int64()), "s": pa.array([str(i) for i in group], pa.string())}, schema))
        vector(name, f"an Arrow stream of batches with {[len(b) for b in batches]} rows", ["input.arrows"], {"i": "int64", "s": "string"}, rows if batches else [], "by hand", case="D21")
    nulls = pa.table({"i": pa.nulls(4, pa.int64()), "s": pa.nulls(4, pa.string()), "l": pa.nulls(4, pa.list_(pa.string())), "k": pa.array([1, 2, 3, 4], pa.int32())})
    pq.write_table(nulls, path("all-null", "input.parquet"))
    vector("all-null", "columns of nothing but null", ["input.parquet"], {"i": "int64", "s": "string", "l": "list<string>", "k": "int32"}, rows_of(nulls))
    required = pa.schema([pa.field("i", pa.int64(), nullable=False), pa.field("s", pa.string(), nullable=False), pa.field("l", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False)])
    table = pa.table({"i": [1, 2], "s": ["a", "b"], "l": [[1], []]}, required)
    pq.write_table(table, path("required", "input.parquet"))
    vector("required", "required columns and elements; an import does not demand them of later batches", ["input.parquet"], {"i": "int64", "s": "string", "l": "list<int32>"}, rows_of(table))


def dictionary_vectors():
    """D24"""
    schema = pa.schema({"c": pa.dictionary(pa.int32(), pa.string())})

    def batch(indices, values):
        return pa.record_batch([pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(values))], schema)

    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.OSFile(path("arrow-dictionaries", "input.arrows"), "wb") as sink, pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(batch([0, 1], ["n", "s"]))
        writer.write_batch(batch([0], ["e"]))
        writer.write_batch(batch([1, 0, None], ["e", "w"]))
    rows = [{"c": c} for c in ("n", "s", "e", "w", "e", None)]
    vector("arrow-dictionaries", "a dictionary that is replaced, then added to, in mid-stream", ["input.arrows"], {"c": "string"}, rows, "by hand", case="D24")


def large_text():
    texts = ["", "x" * 20_000, None, "é" * 4_000, "\U0001f986" * 1_000]
    for name, type in {"large-string": pa.large_string(), "string-view": pa.string_view()}.items():
        table = pa.table({"s": pa.array(texts, type)})
        with pa.OSFile(path(f"arrow-{name}", "input.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        vector(f"arrow-{name}", f"long texts as {type}", ["input.arrow"], {"s": "string"}, [{"s": s} for s in texts], "by hand")


def polars_vectors():
    frame = pl.DataFrame(
        {
            "u64": pl.Series([2**64 - 1, None, 0], dtype=pl.UInt64),
            "s": ["", None, "naïve 🦆"],
            "cat": pl.Series(["a", None, "b"], dtype=pl.Categorical),
            "en": pl.Series(["lo", "hi", None], dtype=pl.Enum(["lo", "hi"])),
            "dt": pl.Series([datetime.datetime(2031, 2, 27, 23, 6, 40, 123000), None, datetime.datetime(1969, 12, 31)], dtype=pl.Datetime("ms")),
            "tz": pl.Series([datetime.datetime(2031, 2, 27, 23, 6, 40, 123456), None, datetime.datetime(1, 1, 1)], dtype=pl.Datetime("us")).dt.replace_time_zone("UTC"),
            "day": [datetime.date(1900, 2, 28), None, datetime.date(2031, 2, 27)],
            "t": [datetime.time(1, 2, 3, 4), None, datetime.time(0)],
            "dec": pl.Series([D("-0.01"), None, D("123456789.99")], dtype=pl.Decimal(20, 2)),
            "bin": [b"\x00\xff", None, b""],
            "l": [[1, None], None, []],
            "st": [{"a": 1.5, "b": ["x"]}, {"a": None, "b": None}, {"a": -1.5, "b": []}],
        }
    )
    schema = {
        "u64": "uint64", "s": "string", "cat": "string", "en": "string", "dt": "timestamp", "tz": "timestamptz",
        "day": "date", "t": "time", "dec": "decimal(20,2)", "bin": "binary", "l": "list<int64>", "st": "struct<a: float64, b: list<string>>",
    }  # fmt: skip
    rows = [{name: cell(value) for name, value in row.items()} for row in frame.to_dicts()]
    for name, compression in {"polars-zstd": "zstd", "polars-lz4-raw": "lz4", "polars-brotli": "brotli"}.items():
        frame.write_parquet(path(name, "input.parquet"), compression=compression, row_group_size=2)
        vector(name, f"polars' types in Parquet, {compression}", ["input.parquet"], schema, rows, written=POLARS)
    for name, write in {
        "polars-arrow": lambda p: frame.write_ipc(p, compression="uncompressed"),
        "polars-arrow-zstd": lambda p: frame.write_ipc(p, compression="zstd"),
        "polars-arrow-lz4": lambda p: frame.write_ipc(p, compression="lz4"),
    }.items():
        write(path(name, "input.arrow"))
        vector(name, "polars' types in Arrow IPC", ["input.arrow"], schema, rows, written=POLARS)


types_vectors()
nested_vectors()
encoding_vectors()
time_vectors()
decimal_vectors()
empty_vectors()
dictionary_vectors()
large_text()
polars_vectors()
