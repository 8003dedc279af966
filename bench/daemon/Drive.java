import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.commons.beanutils.BeanUtilsBean;
import org.apache.commons.beanutils.ConvertUtilsBean;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.multilang.MultiLangRecordProcessorFactory;
import software.amazon.kinesis.multilang.config.MultiLangDaemonConfiguration;
import software.amazon.kinesis.processor.Checkpointer;
import software.amazon.kinesis.processor.PreparedCheckpointer;
import software.amazon.kinesis.processor.RecordProcessorCheckpointer;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.kpl.ExtendedSequenceNumber;

/**
 * Drives the daemon's own record processors from memory: no AWS, no leases, nothing between the records and the child
 * but the daemon's code. What it measures is the child, and whatever the child starts.
 *
 * Arguments: command, shards, records per shard, records per batch, number of the run: its records come after those of
 * the runs before, so that a child that remembers them takes them. Prints one line of JSON.
 */
public final class Drive {
    private static final int PAYLOAD = 1024;
    private static final String SEQUENCE = "496600000000000000000000000000000000";

    private Drive() {}

    public static void main(String[] args) throws Exception {
        String command = args[0];
        int shards = Integer.parseInt(args[1]);
        int records = Integer.parseInt(args[2]);
        int batch = Integer.parseInt(args[3]);
        String sequence = SEQUENCE + String.format("%04d", Integer.parseInt(args[4]));
        ExecutorService pool = Executors.newCachedThreadPool();
        MultiLangDaemonConfiguration configuration =
                new MultiLangDaemonConfiguration(BeanUtilsBean.getInstance(), new ConvertUtilsBean());
        MultiLangRecordProcessorFactory factory = new MultiLangRecordProcessorFactory(command, pool, configuration);
        CountDownLatch initialized = new CountDownLatch(shards);
        List<Future<Long>> ends = new ArrayList<>();
        for (int shard = 0; shard < shards; shard++) {
            int number = shard;
            ends.add(pool.submit(() -> drive(factory.shardRecordProcessor(), sequence, number, records, batch, initialized)));
        }
        initialized.await();
        long start = System.nanoTime();
        long last = start;
        for (Future<Long> end : ends) {
            last = Math.max(last, end.get());
        }
        double seconds = (last - start) / 1e9;
        System.out.printf(
                "{\"records\": %d, \"seconds\": %.3f, \"rate\": %.0f}%n",
                (long) shards * records, seconds, shards * (double) records / seconds);
        System.exit(0);
    }

    private static long drive(
            ShardRecordProcessor processor, String sequence, int shard, int records, int batch,
            CountDownLatch initialized)
            throws Exception {
        processor.initialize(InitializationInput.builder()
                .shardId(String.format("shardId-%012d", shard))
                .extendedSequenceNumber(ExtendedSequenceNumber.TRIM_HORIZON)
                .build());
        initialized.countDown();
        initialized.await();
        InMemory checkpointer = new InMemory();
        byte[] template = template(shard);
        for (int done = 0; done < records; done += batch) {
            processor.processRecords(ProcessRecordsInput.builder()
                    .records(records(template, sequence, done, Math.min(batch, records - done)))
                    .checkpointer(checkpointer)
                    .millisBehindLatest(0L)
                    .build());
        }
        processor.shardEnded(ShardEndedInput.builder().checkpointer(checkpointer).build());
        if (!checkpointer.ended) {
            throw new IllegalStateException("shard " + shard + " was not checkpointed at its end");
        }
        return System.nanoTime();
    }

    /** A page view as a web shop sends it: 22 fields, one nested, padded with its text to 1 KiB. */
    private static byte[] template(int shard) {
        String head = "{\"id\":1000000000,\"shard\":" + shard
                + ",\"event_id\":\"7f9c2ba4-e88f-4e1d-a36b-000000000000\",\"event_type\":\"page_view\""
                + ",\"occurred_at\":\"2026-11-21T10:00:00.123Z\",\"user_id\":4711,\"session_id\":\"s-81f3c2a97d05\""
                + ",\"url\":\"https://shop.example/catalogue/shoes/running/trail-runner-9?colour=blue&size=43\""
                + ",\"referrer\":\"https://search.example/results?q=trail+running+shoes\",\"http_status\":200"
                + ",\"user_agent\":\"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/131.0 Safari/537.36\""
                + ",\"ip\":\"203.0.113.77\",\"country\":\"DE\",\"city\":\"Hamburg\",\"latitude\":53.5511,\"longitude\":9.9937"
                + ",\"device\":{\"os\":\"Linux\",\"browser\":\"Chrome\",\"mobile\":false},\"price\":129.95,\"currency\":\"EUR\""
                + ",\"quantity\":1,\"in_stock\":true,\"tags\":[\"shoes\",\"sale\",\"trail\"],\"text\":\"";
        Random random = new Random(shard);
        StringBuilder text = new StringBuilder(head);
        while (text.length() < PAYLOAD - 2) {
            text.append((char) ('a' + random.nextInt(26)));
        }
        return text.append("\"}").toString().getBytes(StandardCharsets.UTF_8);
    }

    private static List<KinesisClientRecord> records(byte[] template, String sequence, int from, int count) {
        List<KinesisClientRecord> records = new ArrayList<>(count);
        Instant arrival = Instant.now();
        int eventId = new String(template, StandardCharsets.UTF_8).indexOf("000000000000");
        int userId = new String(template, StandardCharsets.UTF_8).indexOf("4711");
        int sessionId = new String(template, StandardCharsets.UTF_8).indexOf("81f3c2a97d05");
        for (int index = from; index < from + count; index++) {
            byte[] data = template.clone();
            number(data, 6, 10, 1_000_000_000L + index);
            number(data, eventId, 12, index);
            number(data, userId, 4, 1_000 + index % 9_000);
            number(data, sessionId, 12, 100_000_000_000L + index / 7);
            // The text differs from record to record too, so that no encoding can fold it.
            for (int place = 0; place < 8; place++) {
                data[PAYLOAD - 3 - place * 13] = (byte) ('a' + ((index >> place) * 7 + place) % 26);
            }
            records.add(KinesisClientRecord.builder()
                    .data(ByteBuffer.wrap(data))
                    .partitionKey("key-" + index)
                    .sequenceNumber(sequence + String.format("%016d", index + 1L))
                    .subSequenceNumber(0)
                    .approximateArrivalTimestamp(arrival)
                    .build());
        }
        return records;
    }

    /** Writes a number into a document, right-aligned, without making a string of it. */
    private static void number(byte[] data, int at, int digits, long value) {
        for (int place = at + digits - 1; place >= at; place--, value /= 10) {
            data[place] = (byte) ('0' + value % 10);
        }
    }

    /** Takes every checkpoint; the one without a number, or with SHARD_END, ends the shard. */
    private static final class InMemory implements RecordProcessorCheckpointer {
        private volatile boolean ended;

        @Override public void checkpoint() { ended = true; }
        @Override public void checkpoint(software.amazon.awssdk.services.kinesis.model.Record record) {}
        @Override public void checkpoint(String sequence) { ended |= "SHARD_END".equals(sequence); }
        @Override public void checkpoint(String sequence, long sub) { checkpoint(sequence); }
        @Override public PreparedCheckpointer prepareCheckpoint() { throw new UnsupportedOperationException(); }
        @Override public PreparedCheckpointer prepareCheckpoint(byte[] state) { return prepareCheckpoint(); }
        @Override public PreparedCheckpointer prepareCheckpoint(
                software.amazon.awssdk.services.kinesis.model.Record record) { return prepareCheckpoint(); }
        @Override public PreparedCheckpointer prepareCheckpoint(
                software.amazon.awssdk.services.kinesis.model.Record record, byte[] state) {
            return prepareCheckpoint();
        }
        @Override public PreparedCheckpointer prepareCheckpoint(String sequence) { return prepareCheckpoint(); }
        @Override public PreparedCheckpointer prepareCheckpoint(String sequence, byte[] state) {
            return prepareCheckpoint();
        }
        @Override public PreparedCheckpointer prepareCheckpoint(String sequence, long sub) {
            return prepareCheckpoint();
        }
        @Override public PreparedCheckpointer prepareCheckpoint(String sequence, long sub, byte[] state) {
            return prepareCheckpoint();
        }
        @Override public Checkpointer checkpointer() { return null; }
    }
}
