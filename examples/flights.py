"""Flights out of New York: JSON records become rows of a Delta table, partitioned by airport.

Run it on a file of records, with no AWS:    kcl-spark simulate flights.py --input flights.jsonl
Run it on a stream:                          kcl-spark run flights.py --stream flights
"""

import os

from pyspark.sql import functions as F

from kcl_spark import Pipeline, Trigger, formats, sinks

TABLES = os.environ.get("FLIGHTS_TABLES", "out")

SCHEMA = """
    year int NOT NULL, month int NOT NULL, day int NOT NULL, carrier string NOT NULL, flight int NOT NULL,
    tailnum string, origin string NOT NULL, dest string NOT NULL, dep_time double, sched_dep_time int,
    dep_delay double, arr_time double, sched_arr_time int, arr_delay double, air_time double, distance double,
    hour int, minute int, time_hour string
"""

pipeline = Pipeline(
    name="flights",
    source=formats.json(SCHEMA),
    transform=lambda df: df.withColumn("late", F.coalesce(F.col("arr_delay") > 15, F.lit(False))),
    sink=sinks.delta(f"{TABLES}/flights", partition_by=["origin"]),
    dead_letter=sinks.delta(f"{TABLES}/flights_dead"),
    trigger=Trigger(interval="1s", max_bytes="64MiB"),
)
