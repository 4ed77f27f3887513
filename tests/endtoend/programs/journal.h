// What programs say that change records of a file until they are killed: "begin V R R R" before version V of some
// records is written, "done V" when all of it is durable. killing.py reads it.
#pragma once

#include <stdio.h>
#include <unistd.h>

#include <random>

constexpr unsigned kRecordBytes = 700, kOfTransaction = 6;

// A record of version V is V's byte, all of it.
inline int byte_of(unsigned version) { return static_cast<int>(1 + version % 255); }

// Six records, one of them perhaps twice.
class Transaction {
 public:
  // Begins it.
  Transaction(unsigned version, unsigned records, std::mt19937& random) : version_(version) {
    char line[200];
    int bytes = snprintf(line, sizeof line, "begin %u", version);
    for (unsigned& record : chosen_) {
      record = random() % records;
      bytes += snprintf(line + bytes, sizeof line - static_cast<size_t>(bytes), " %u", record);
    }
    line[bytes++] = '\n';
    say(line, bytes);
  }
  void done() const {
    char line[40];
    say(line, snprintf(line, sizeof line, "done %u\n", version_));
  }

  const unsigned* begin() const { return chosen_; }
  const unsigned* end() const { return chosen_ + kOfTransaction; }

 private:
  static void say(const char* text, int bytes) {
    if (write(1, text, static_cast<size_t>(bytes)) != bytes) _exit(1);
  }

  const unsigned version_;
  unsigned chosen_[kOfTransaction];
};
