// Gives the daemon one properties text a line (UTF-8, in hexadecimal), as if it were started with it, and answers
// `ends`, or `starts` with the property that stands behind the text as the daemon has it now.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.commons.beanutils.PropertyUtilsBean;
import software.amazon.kinesis.multilang.MultiLangDaemonConfig;
import software.amazon.kinesis.multilang.config.MultiLangDaemonConfiguration;
import software.amazon.kinesis.processor.ShardRecordProcessorFactory;

public class Daemon {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            System.out.println(answer(words[0], words[1]));
        }
        System.exit(0);
    }

    static String answer(String hex, String property) throws Exception {
        Path file = Files.createTempFile("kcl", ".properties");
        Files.write(file, HexFormat.of().parseHex(hex));
        try {
            MultiLangDaemonConfig config = new MultiLangDaemonConfig(file.toString());
            MultiLangDaemonConfiguration bean = config.getMultiLangDaemonConfiguration();
            Class<?> factory = ShardRecordProcessorFactory.class;
            Method resolve = MultiLangDaemonConfiguration.class.getDeclaredMethod("resolvedConfiguration", factory);
            resolve.setAccessible(true);
            resolve.invoke(bean, config.getRecordProcessorFactory());
            return "starts " + (property.equals("-") ? "" : new PropertyUtilsBean().getProperty(bean, property));
        } catch (Exception ended) {
            return "ends";
        } finally {
            Files.delete(file);
        }
    }
}
