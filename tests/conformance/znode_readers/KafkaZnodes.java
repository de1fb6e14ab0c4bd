import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Reads znodes' content with the `kafka.zk` classes of the release on the class path, by reflection, so that one file
 * serves every release. A line of the input is the kind and the content in Base64; a line of the output is
 * `value JSON`, `nothing` (Kafka goes on as if there were no content) or `refused CLASS`.
 */
public class KafkaZnodes {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line; (line = input.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            output.println(answer(parts[0], parts[1].equals("null") ? null : Base64.getDecoder().decode(parts[1])));
        }
        output.flush();
    }

    private static String answer(String kind, byte[] data) {
        try {
            String value = read(kind, data);
            return value == null ? "nothing" : "value " + value;
        } catch (InvocationTargetException error) {
            return "refused " + error.getCause().getClass().getSimpleName();
        } catch (ReflectiveOperationException error) {
            return "unknown";
        }
    }

    private static String read(String kind, byte[] data) throws ReflectiveOperationException {
        switch (kind) {
            case "controller": {
                Object id = decode("ControllerZNode", data);
                if (text(id) == null) return null;
                Object epoch = "absent";
                try {
                    epoch = call(decode("ControllerZNode", "decodeController", data, 0), "kraftEpoch");
                } catch (NoSuchMethodException before34) {
                    // Up to 3.3 a controller's znode has no epoch of KRaft.
                }
                return array(text(id), "absent".equals(epoch) ? "\"absent\"" : text(epoch));
            }
            case "epoch":
                return text(decode("ControllerEpochZNode", data));
            case "broker": {
                Object info = decode("BrokerIdZNode", "decode", 1, data);
                Object broker = call(info, "broker");
                return array(text(call(info, "version")), endpoints(call(broker, "endPoints")), text(call(broker, "rack")));
            }
            case "topic": {
                Object read = decode("TopicZNode", "decode", "t", data);
                try {
                    return array(text(call(read, "assignment")), text(call(read, "topicId")));
                } catch (NoSuchMethodException before28) {
                    return array(text(read), null);
                }
            }
            case "state": {
                Object stat = Class.forName("org.apache.zookeeper.data.Stat").getConstructor().newInstance();
                Object option = decode("TopicPartitionStateZNode", "decode", data, stat);
                if (isEmpty(option)) return null;
                Object read = call(option, "get");
                Object state = call(read, "leaderAndIsr");
                String recovery = null;
                try {
                    recovery = text(call(call(state, "leaderRecoveryState"), "value"));
                } catch (NoSuchMethodException before32) {
                    // Up to 3.1 a state has no recovery.
                }
                return array(text(call(state, "leader")), text(call(state, "leaderEpoch")), text(call(state, "isr")),
                    text(call(read, "controllerEpoch")), recovery);
            }
            case "config":
                return text(decode("ConfigEntityZNode", data));
            case "reassign":
                return text(right(decode("ReassignPartitionsZNode", data)));
            case "preferred":
                return text(decode("PreferredReplicaElectionZNode", data));
            case "isr":
                return text(decode("IsrChangeNotificationSequenceZNode", data));
            case "log_dir":
                return text(decode("LogDirEventNotificationSequenceZNode", data));
            case "cluster":
                return text(decode("ClusterIdZNode", "fromJson", data));
            case "feature": {
                Object read = decode("FeatureZNode", data);
                String status = String.valueOf(call(read, "status")).contains("Enabled") ? "1" : "0";
                return array(text(call(read, "version")), status);
            }
            case "migration": {
                Object read = decode("MigrationZNode", "decode", data, 0, 0L);
                return array(text(call(read, "kraftControllerId")), text(call(read, "kraftControllerEpoch")),
                    text(call(read, "kraftMetadataOffset")), text(call(read, "kraftMetadataEpoch")));
            }
            case "producer_ids": {
                Object read = decode("ProducerIdBlockZNode", "parseProducerIdBlockData", (Object) data);
                return array(text(call(read, "assignedBrokerId")), text(call(read, "firstProducerId")), text(call(read, "size")));
            }
            default:
                throw new NoSuchMethodException(kind);
        }
    }

    private static Object decode(String znode, byte[] data) throws ReflectiveOperationException {
        return decode(znode, "decode", (Object) data);
    }

    private static Object decode(String znode, String method, Object... arguments) throws ReflectiveOperationException {
        Class<?> module;
        try {
            module = Class.forName("kafka.zk." + znode + "$");
        } catch (ClassNotFoundException absent) {
            throw new NoSuchMethodException(znode);
        }
        for (Method each : module.getMethods()) {
            if (each.getName().equals(method) && each.getParameterCount() == arguments.length) {
                return each.invoke(module.getField("MODULE$").get(null), arguments);
            }
        }
        throw new NoSuchMethodException(method);
    }

    private static Object call(Object object, String method) throws ReflectiveOperationException {
        Method found = object.getClass().getMethod(method);
        found.setAccessible(true);
        return found.invoke(object);
    }

    private static boolean isEmpty(Object option) throws ReflectiveOperationException {
        return (boolean) call(option, "isEmpty");
    }

    private static Object right(Object read) throws ReflectiveOperationException {
        if (read.getClass().getName().endsWith(".Left")) return null;
        return read.getClass().getName().endsWith(".Right") ? call(read, "value") : read;
    }

    private static String endpoints(Object sequence) throws ReflectiveOperationException {
        var joined = new StringJoiner(",", "[", "]");
        for (Object iterator = call(sequence, "iterator"); (boolean) call(iterator, "hasNext"); ) {
            Object each = call(iterator, "next");
            joined.add(array(text(call(call(each, "listenerName"), "value")), text(call(each, "host")), text(call(each, "port"))));
        }
        return joined.toString();
    }

    private static String text(Object value) throws ReflectiveOperationException {
        if (value == null) return null;
        String type = value.getClass().getName();
        if (type.equals("scala.None$")) return null;
        if (type.equals("scala.Some")) return text(call(value, "get"));
        if (value instanceof Number || value instanceof Boolean) return value.toString();
        if (type.endsWith(".ReplicaAssignment")) {
            return array(text(call(value, "replicas")), text(call(value, "addingReplicas")), text(call(value, "removingReplicas")));
        }
        if (value instanceof Properties properties) {
            var sorted = new TreeMap<String, String>();
            for (Map.Entry<?, ?> each : properties.entrySet()) sorted.put((String) each.getKey(), text(each.getValue()));
            return object(sorted);
        }
        for (Class<?> each = value.getClass(); each != null; each = each.getSuperclass()) {
            String name = each.getName();
            if (name.startsWith("scala.collection")) return collection(value);
        }
        return quoted(value.toString());
    }

    private static String collection(Object value) throws ReflectiveOperationException {
        Object iterator = call(value, "iterator");
        boolean isMap = has(value, "scala.collection.Map"), isSet = has(value, "scala.collection.Set");
        var pairs = new TreeMap<String, String>();
        var names = new TreeSet<String>();
        var joined = new StringJoiner(",", "[", "]");
        while ((boolean) call(iterator, "hasNext")) {
            Object each = call(iterator, "next");
            if (isMap) pairs.put(call(each, "_1").toString(), text(call(each, "_2")));
            else if (isSet) names.add(text(each));
            else joined.add(String.valueOf(text(each)));
        }
        if (isMap) return object(pairs);
        return isSet ? "[" + String.join(",", names) + "]" : joined.toString();
    }

    private static boolean has(Object value, String name) throws ClassNotFoundException {
        return Class.forName(name).isInstance(value);
    }

    private static String object(Map<String, String> pairs) {
        var joined = new StringJoiner(",", "{", "}");
        pairs.forEach((key, value) -> joined.add(quoted(key) + ":" + value));
        return joined.toString();
    }

    private static String array(String... values) {
        return "[" + String.join(",", values) + "]";
    }

    private static String quoted(String text) {
        var quoted = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') quoted.append('\\').append(each);
            else if (each < ' ' || each > '~') quoted.append(String.format("\\u%04x", (int) each));
            else quoted.append(each);
        }
        return quoted.append('"').toString();
    }
}
