"""Reads what is exported with other programs' code, for the tests: PyIceberg, and DuckDB with its extension for Iceberg.

    readers.py rows pyiceberg|duckdb FOLDER...   each row of tables as JSON, with the table's name in front
    readers.py files COLUMN AFTER FOLDER         how many files are read for the rows in which COLUMN is above AFTER
    readers.py query                             the rows of DuckDB's answer to standard input: texts, with tabs between
"""

import base64
import datetime
import decimal
import glob
import json
import os
import sys

decimal.getcontext().prec = 38  # that of the largest column; with fewer digits normalize would round


def table(folder):
    """The table in a folder, in the version that is in force."""
    from pyiceberg.table import StaticTable

    with open(os.path.join(folder, "metadata", "version-hint.text")) as hint:
        version = hint.read()
    return StaticTable.from_metadata(os.path.join(folder, "metadata", f"v{version}.metadata.json"))


def duckdb():
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return duckdb, connection


def with_duckdb():
    module, connection = duckdb()
    packages = os.path.dirname(os.path.dirname(module.__file__))
    for name in ["avro", "iceberg"]:
        [extension] = glob.glob(f"{packages}/duckdb_extension_{name}/**/*.duckdb_extension", recursive=True)
        connection.execute(f"LOAD '{extension}'")
    return lambda folder: connection.execute(f"SELECT * FROM iceberg_scan('{folder}')").to_arrow_table()


def with_pyiceberg():
    return lambda folder: table(folder).scan().to_arrow()


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


def rows(engine, *folders):
    read = {"pyiceberg": with_pyiceberg, "duckdb": with_duckdb}[engine]()
    for folder in folders:
        for row in read(folder).to_pylist():
            print(os.path.basename(folder), json.dumps(row, default=shown, ensure_ascii=False), sep="\t")


def files(column, after, folder):
    from pyiceberg.expressions import GreaterThan

    print(len(list(table(folder).scan(row_filter=GreaterThan(column, int(after))).plan_files())))


def query():
    _, connection = duckdb()
    for row in connection.execute(sys.stdin.read()).fetchall():
        print(*[str(value).lower() if isinstance(value, bool) else value for value in row], sep="\t")


{"rows": rows, "files": files, "query": query}[sys.argv[1]](*sys.argv[2:])
