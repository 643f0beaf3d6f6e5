"""Writes each vector's `reference.parquet` from its `cells.json`, which is written by hand.

    python -m venv venv && venv/bin/pip install pyarrow==26.0.1
    venv/bin/python make.py
"""

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ["event_type", "event", "distinct_id", "anonymous_id", "ts", "message_id", "properties", "context", "dt", "received_at"]

for path in sorted(pathlib.Path(__file__).parent.glob("*/cells.json")):
    rows = json.loads(path.read_text(encoding="utf-8"))
    vector = json.loads((path.parent / "vector.json").read_text(encoding="utf-8"))
    fields = [pa.field(name, pa.string(), nullable=False) for name in NAMES]
    if vector["unknown"] == "keep":
        fields.append(pa.field("extra", pa.json_()))
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(fields)]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    pq.write_table(table, path.parent / "reference.parquet", compression="none", use_dictionary=False, store_schema=False)
