// A hash map of arrays of 1000 bytes, some of which are replaced: Heap MIB.
import java.util.HashMap;
import java.util.Random;

public class Heap {
  public static void main(String[] arguments) {
    HashMap<Integer, byte[]> map = new HashMap<>();
    Random random = new Random(5);
    int count = Integer.parseInt(arguments[0]) * 1024;
    for (int i = 0; i < count; i++) {
      byte[] bytes = new byte[1000];
      bytes[0] = (byte) i;
      bytes[999] = (byte) (i * 7);
      map.put(i, bytes);
      if (i % 9 == 0) map.put(random.nextInt(i + 1), new byte[] {(byte) i});
    }
    long sum = 0;
    for (int i = 0; i < count; i++) {
      byte[] bytes = map.get(i);
      sum = sum * 31 + bytes[0] + bytes[bytes.length - 1] + bytes.length;
    }
    System.out.println(sum);
  }
}
