/* A program that `spillway run` takes for a recompiled one: it names MARK. It shows what it was given:
 *   env NAME...    prints NAME=value for each     args ...   prints its arguments, one a line
 *   exit N         exits with N                   kill N     sends itself signal N
 *   wait           says "ready" and waits for a signal */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int MARK = 1;

int main(int argc, char** argv) {
  if (argc < 2) return 0;
  if (strcmp(argv[1], "env") == 0)
    for (int i = 2; i < argc; ++i) printf("%s=%s\n", argv[i], getenv(argv[i]) ? getenv(argv[i]) : "(unset)");
  if (strcmp(argv[1], "args") == 0)
    for (int i = 0; i < argc; ++i) printf("%s\n", argv[i]);
  if (strcmp(argv[1], "exit") == 0) return atoi(argv[2]);
  if (strcmp(argv[1], "kill") == 0) raise(atoi(argv[2]));
  if (strcmp(argv[1], "wait") == 0) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  return 0;
}
