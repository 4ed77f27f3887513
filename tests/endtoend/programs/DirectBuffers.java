import java.nio.ByteBuffer;
import java.nio.LongBuffer;

/** Direct buffers, which are malloc's: filled, sorted through, and summed by two threads; null pointers are caught meanwhile. */
public class DirectBuffers {
  static final int BUFFERS = 24, WORDS = 1 << 19;

  static long mix(long sum, long value) {
    sum ^= value + 0x9E3779B97F4A7C15L + (sum << 6) + (sum >>> 2);
    return sum * 0xBF58476D1CE4E5B9L;
  }

  public static void main(String[] arguments) throws Exception {
    LongBuffer[] all = new LongBuffer[BUFFERS];
    for (int b = 0; b < BUFFERS; ++b) {
      all[b] = ByteBuffer.allocateDirect(WORDS * 8).asLongBuffer();
      for (int i = 0; i < WORDS; ++i) all[b].put(i, (long) b * WORDS + i);
    }
    long[] sums = new long[2];
    Thread[] threads = new Thread[2];
    for (int t = 0; t < 2; ++t) {
      final int own = t;
      threads[t] = new Thread(() -> {
        long state = own + 1, sum = 0;
        int caught = 0;
        String nothing = null;
        for (int i = 0; i < 60000; ++i) {
          state ^= state << 13;
          state ^= state >>> 7;
          state ^= state << 17;
          LongBuffer buffer = all[(int) ((state >>> 20) % (BUFFERS / 2)) * 2 + own];
          int at = (int) ((state >>> 33) % WORDS);
          buffer.put(at, buffer.get(at) + 1);
          sum = mix(sum, buffer.get(at));
          if (i % 1000 == 0) {
            try { if (nothing.length() == 7) sum++; } catch (NullPointerException e) { caught++; }
            byte[] garbage = new byte[100000];
            sum += garbage.length;
          }
        }
        sums[own] = mix(sum, caught);
      });
      threads[t].start();
    }
    for (Thread thread : threads) thread.join();
    long total = 0;
    for (LongBuffer buffer : all) for (int i = 0; i < WORDS; i += 7) total = mix(total, buffer.get(i));
    System.out.println(Long.toHexString(sums[0]) + " " + Long.toHexString(sums[1]) + " " + Long.toHexString(total));
  }
}
