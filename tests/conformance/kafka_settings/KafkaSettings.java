import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Kafka's own definitions of the settings in /config/topics and /config/brokers.
 *
 * <p>Without arguments, prints each definition in a line of fields that tabs separate. With the argument "parse", reads
 * lines of a kind, and of names with their values, and prints for each whether Kafka parses it. Topics' settings go
 * through the method that loads the logs at a broker's start.
 */
public class KafkaSettings {
    public static void main(String[] arguments) throws Exception {
        ConfigDef topics = topics(), brokers = brokers();
        if (arguments.length == 0) {
            print("topic", topics);
            print("broker", brokers);
            return;
        }
        Method load = method(logConfig(), "fromProps", 2);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] fields = line.split("\t", -1);
            Properties settings = new Properties();
            for (int at = 1; at < fields.length; at += 2) {
                settings.setProperty(fields[at], fields[at + 1]);
            }
            try {
                if (fields[0].equals("topic")) {
                    load.invoke(logConfigModule(), new HashMap<>(), settings);
                } else {
                    brokers.parse(settings);
                }
                System.out.println("parsed");
            } catch (Exception error) {
                System.out.println("refused");
            }
        }
    }

    private static ConfigDef topics() throws Exception {
        return (ConfigDef) member(logConfigModule() == null ? null : logConfigModule(), logConfig(), "CONFIG", "configDef",
            "kafka$log$LogConfig$$configDef");
    }

    private static ConfigDef brokers() throws Exception {
        Object module = module("kafka.server.DynamicConfig$Broker");
        return (ConfigDef) member(module, module.getClass(), "brokerConfigDef", "kafka$server$DynamicConfig$Broker$$brokerConfigDef",
            "brokerConfigs");
    }

    private static Class<?> logConfig() throws Exception {
        try {
            return Class.forName("org.apache.kafka.storage.internals.log.LogConfig");
        } catch (ClassNotFoundException beforeVersion35) {
            return Class.forName("kafka.log.LogConfig$");
        }
    }

    private static Object logConfigModule() throws Exception {
        return logConfig().getName().endsWith("$") ? module("kafka.log.LogConfig") : null;
    }

    private static Object module(String name) throws Exception {
        return Class.forName(name + "$").getField("MODULE$").get(null);
    }

    private static Object member(Object owner, Class<?> type, String... names) throws Exception {
        for (String name : names) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(owner);
                }
            }
            for (Method found : type.getDeclaredMethods()) {
                if (found.getName().equals(name) && found.getParameterCount() == 0) {
                    found.setAccessible(true);
                    return found.invoke(owner);
                }
            }
        }
        throw new NoSuchFieldException(type + " " + String.join(", ", names));
    }

    private static Method method(Class<?> type, String name, int parameters) throws NoSuchMethodException {
        for (Method found : type.getDeclaredMethods()) {
            if (found.getName().equals(name) && found.getParameterCount() == parameters) {
                found.setAccessible(true);
                return found;
            }
        }
        throw new NoSuchMethodException(type + " " + name);
    }

    private static void print(String kind, ConfigDef definitions) throws Exception {
        Map<?, ?> keys = (Map<?, ?>) member(definitions, ConfigDef.class, "configKeys");
        for (Object each : new TreeMap<>(keys).values()) {
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) each;
            String validator = key.validator == null ? "" : key.validator.getClass().getName();
            System.out.println(String.join("\t", kind, key.name, key.type.name(), validator, "" + key.validator, "" + key.defaultValue));
        }
    }
}
