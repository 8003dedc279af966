// Reads one properties text a line (UTF-16, in hexadecimal) and answers with what java.util.Properties makes of it.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.util.Properties;

public class Oracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(text(line)));
        }
    }

    static String answer(String text) throws Exception {
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text));
        } catch (IllegalArgumentException malformed) {
            return "malformed";
        }
        StringBuilder answer = new StringBuilder("ok");
        for (String key : properties.stringPropertyNames()) {
            answer.append(' ').append(hex(key)).append('=').append(hex(properties.getProperty(key)));
        }
        return answer.toString();
    }

    static String text(String hex) {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < hex.length(); at += 4) {
            text.append((char) Integer.parseInt(hex.substring(at, at + 4), 16));
        }
        return text.toString();
    }

    static String hex(String text) {
        StringBuilder hex = new StringBuilder();
        for (char unit : text.toCharArray()) {
            hex.append(String.format("%04x", (int) unit));
        }
        return hex.toString();
    }
}
