/* A program of several parts: `program NAME ARGUMENT` runs one and returns its exit code. */
#ifndef PARTS_H
#define PARTS_H

#include <stdlib.h>
#include <string.h>

struct Part {
  const char* name;
  int (*run)(long argument);
};

#define RUN_PARTS(parts, count, arguments)                                                     \
  do {                                                                                         \
    for (const struct Part* part = parts; part < parts + sizeof parts / sizeof *parts; ++part) \
      if (count > 1 && strcmp(arguments[1], part->name) == 0)                                  \
        return part->run(count > 2 ? strtol(arguments[2], NULL, 0) : 0);                       \
    return 99;                                                                                 \
  } while (0)

#endif
