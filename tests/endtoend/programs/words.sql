PRAGMA cache_size=-200000;
CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT, size INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
  INSERT INTO words SELECT i, printf('%08x-%s', (i * 7919) % 1000003, hex(zeroblob(40))), i % 101 FROM n;
CREATE INDEX by_word ON words(word);
SELECT size, count(*), min(word), max(word) FROM words GROUP BY size ORDER BY size LIMIT 12;
SELECT count(*) FROM words a JOIN words b ON a.word = b.word AND a.id % 1000 = 0;
