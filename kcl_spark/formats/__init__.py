"""What a record's bytes are: `formats.json("id bigint, ...")`, `formats.raw()`."""

from kcl_spark.formats.base import Format
from kcl_spark.formats.json import json
from kcl_spark.formats.raw import raw

__all__ = ["Format", "json", "raw"]
