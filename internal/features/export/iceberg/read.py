"""Reads tables of Apache Iceberg, for the tests of what is exported: with PyIceberg, or with DuckDB.

    read.py pyiceberg|duckdb FOLDER...

It prints each row as JSON, with the table's name in front, as the program beside it does."""

import base64
import datetime
import decimal
import glob
import json
import os
import sys


def with_pyiceberg(folder):
    from pyiceberg.table import StaticTable

    with open(os.path.join(folder, "metadata", "version-hint.text")) as hint:
        version = hint.read()
    return StaticTable.from_metadata(os.path.join(folder, "metadata", f"v{version}.metadata.json")).scan().to_arrow()


def with_duckdb(folder):
    import duckdb

    connection = duckdb.connect()
    packages = os.path.dirname(os.path.dirname(duckdb.__file__))
    for name in ["avro", "iceberg"]:
        [extension] = glob.glob(f"{packages}/duckdb_extension_{name}/**/*.duckdb_extension", recursive=True)
        connection.execute(f"LOAD '{extension}'")
    return connection.execute(f"SELECT * FROM iceberg_scan('{folder}')").to_arrow_table()


def shown(value):
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(type(value))


read = {"pyiceberg": with_pyiceberg, "duckdb": with_duckdb}[sys.argv[1]]
for folder in sys.argv[2:]:
    for row in read(folder).to_pylist():
        print(os.path.basename(folder), json.dumps(row, default=shown, ensure_ascii=False), sep="\t")
