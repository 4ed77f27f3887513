// Objects of a garbage-collected heap that the machine reserves without access and commits piece by piece.
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;

public class ObjectHeap {
  public static void main(String[] arguments) {
    int arrays = Integer.parseInt(arguments[0]);
    List<long[]> kept = new ArrayList<>();
    for (int i = 0; i < arrays; i++) {
      long[] words = new long[32 * 1024];
      for (int at = 0; at < words.length; at += 64) words[at] = i * 31L + at;
      kept.add(words);
    }
    HashMap<Integer, String> names = new HashMap<>();
    for (int i = 0; i < 100_000; i++) names.put(i, "name " + i);
    long sum = 0;
    for (int round = 0; round < 2; round++) {
      for (long[] words : kept)
        for (int at = 0; at < words.length; at += 64) sum += words[at] * (at + 1);
      // What is dropped is collected, and its memory committed again.
      for (int i = round; i < kept.size(); i += 3) kept.set(i, kept.get(i).clone());
      System.gc();
    }
    for (int i = 0; i < 100_000; i++) sum += names.get(i).length();
    System.out.println(sum);
  }
}
