// SPDX-License-Identifier: Apache-2.0
//
// probe.py without Python: writes down how it was started, says one line on each stream, and ends as it is told.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

static void write_text(FILE* file, const char* text) {
  fputc('"', file);
  for (; *text != '\0'; ++text) {
    const unsigned char byte = (unsigned char)*text;
    if (byte < 0x20 || byte == '"' || byte == '\\')
      fprintf(file, "\\u%04x", byte);
    else
      fputc(byte, file);
  }
  fputc('"', file);
}

static void write_record(const char* name, int count, char** words) {
  FILE* const file = fopen(name, "w");
  if (file == NULL) exit(99);
  fputs("{\"arguments\": [", file);
  for (int word = 1; word < count; ++word) {
    if (word > 1) fputc(',', file);
    write_text(file, words[word]);
  }
  fputs("], \"environment\": {", file);
  for (char** entry = environ; *entry != NULL; ++entry) {
    char* const text = strdup(*entry);
    char* const equals = strchr(text, '=');
    if (equals == NULL) exit(99);
    *equals = '\0';
    if (entry != environ) fputc(',', file);
    write_text(file, text);
    fputc(':', file);
    write_text(file, equals + 1);
    free(text);
  }
  char folder[4096];
  if (getcwd(folder, sizeof(folder)) == NULL) exit(99);
  fputs("}, \"folder\": ", file);
  write_text(file, folder);
  fprintf(file, ", \"leads_group\": %s, \"leads_session\": %s}\n",
          getpgid(0) == getpid() ? "true" : "false", getsid(0) == getpid() ? "true" : "false");
  fclose(file);
}

static void record_name(char* name, size_t size, const char* rank) {
  snprintf(name, size, "%s/%s.%s.json", getenv("PROBE_OUT"), rank,
           getenv("TORCHELASTIC_RESTART_COUNT"));
}

static void record(int count, char** words) {
  char name[4096], part[4104];
  record_name(name, sizeof(name), getenv("RANK"));
  snprintf(part, sizeof(part), "%s.part", name);
  write_record(part, count, words);
  if (rename(part, name) != 0) exit(99);
}

// Of all ranks: the one that fails must not end the others before they have said how they were started.
static void wait_for_records(void) {
  for (int rank = 0; rank < atoi(getenv("WORLD_SIZE")); ++rank) {
    char number[16], name[4096];
    snprintf(number, sizeof(number), "%d", rank);
    record_name(name, sizeof(name), number);
    while (access(name, F_OK) != 0) usleep(10000);
  }
}

int main(int count, char** words) {
  const char* const rank = getenv("RANK");
  const char* const todo = count > 1 ? words[1] : "";
  printf("probe: out of %s\n", rank);
  fflush(stdout);
  char line[64];
  const int length = snprintf(line, sizeof(line), "probe: err of %s\n", rank);
  if (write(STDERR_FILENO, line, (size_t)length) != length) return 99;
  record(count, words);
  const int ends = strcmp(todo, "end") == 0, signals = strcmp(todo, "signal") == 0;
  if (!ends && !signals) return 0;
  if (strcmp(rank, "1") == 0) {
    wait_for_records();
    if (ends) return atoi(words[2]);
    raise(atoi(words[2]));
  }
  for (;;) pause();
}
