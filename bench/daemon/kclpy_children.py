"""Children (b) and (c), both amazon_kclpy: decode and checkpoint and do nothing; and with a table written per batch.

`python kclpy_children.py nothing`, or `python kclpy_children.py delta TABLE`. (c) is at least once: it has no marks.
"""

import sys

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor


class Nothing(processor.RecordProcessorBase):
    """Decodes each record, keeps none, checkpoints each batch."""

    def initialize(self, initialize_input):
        self.shard_id = initialize_input.shard_id

    def process_records(self, process_records_input):
        payloads = [record.binary_data for record in process_records_input.records]
        if payloads:
            self.write(payloads)
            last = process_records_input.records[-1]
            process_records_input.checkpointer.checkpoint(last.sequence_number, last.sub_sequence_number)

    def write(self, payloads):
        pass

    def lease_lost(self, lease_lost_input):
        pass

    def shard_ended(self, shard_ended_input):
        shard_ended_input.checkpointer.checkpoint()

    def shutdown_requested(self, shutdown_requested_input):
        pass


class Delta(Nothing):
    """Parses each batch with pyarrow and appends it to a Delta table."""

    def __init__(self, table):
        self.table = table

    def write(self, payloads):
        import io

        import pyarrow.json
        from deltalake import write_deltalake

        rows = pyarrow.json.read_json(io.BytesIO(b"\n".join(payloads)))
        write_deltalake(self.table, rows, mode="append")


if __name__ == "__main__":
    kcl.KCLProcess(Nothing() if sys.argv[1] == "nothing" else Delta(sys.argv[2])).run()
