"""Child (d): kcl-spark, JSON with a declared schema, into Delta, exactly once."""

import os

from kcl_spark import Pipeline, formats, sinks

TABLE = os.environ["BENCH_TABLE"]

pipeline = Pipeline(
    name="bench",
    source=formats.json(
        "id bigint NOT NULL, shard int, event_id string, event_type string, occurred_at timestamp, user_id bigint, "
        "session_id string, url string, referrer string, http_status int, user_agent string, ip string, "
        "country string, city string, latitude double, longitude double, "
        "device struct<os: string, browser: string, mobile: boolean>, price double, currency string, quantity int, "
        "in_stock boolean, tags array<string>, text string"
    ),
    sink=sinks.delta(TABLE),
    dead_letter=sinks.delta(TABLE + "_dead"),
)
