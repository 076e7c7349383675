// SPDX-License-Identifier: Apache-2.0
//
// The part of NVML that Convoy calls, over devices described by the variable FAKE_NVML:
//   GPU-1 A100 0000:3b:00.0 80000;GPU-2 H100 0001:17:00.0 80000 MIG-a/1/0/10000 -/0/0/0 MIG-b/2/0/20000
// One GPU per semicolon: UUID, name, PCI address, MiB, then one word per MIG slot: UUID/gpu instance/compute
// instance/MiB, "-" an empty slot; any slot means that MIG is on. UUID "denied" is a GPU that may not be opened.
// FAKE_NVML_INIT is what nvmlInit returns. What a GPU does is a function of its index: 40 + index degrees, busy for
// 90 - index percent (memory 50), 1000 + index MiB taken, 300.5 + index watts. A GPU named "Quiet" tells no more than its memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kSuccess = 0,
  kNoPermission = 4,
  kNotSupported = 3,
  kNotFound = 6,
  kGpus = 64,
  kSlots = 8,
  kText = 96
};

typedef struct {
  char uuid[kText];
  char name[kText];
  unsigned domain, bus, device;
  unsigned long long mib;
  unsigned gpu_instance, compute_instance;
} Thing;

typedef struct {
  Thing thing;
  unsigned slots;
  Thing instances[kSlots];
} Card;

typedef struct {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
} PciInfo;

typedef struct {
  unsigned long long total, free, used;
} MemoryInfo;

static Card cards[kGpus];
static unsigned num_cards;

static void read_card(char* text) {
  Card* card = &cards[num_cards++];
  memset(card, 0, sizeof(*card));
  char* rest = NULL;
  char* word = strtok_r(text, " ", &rest);
  for (int index = 0; word != NULL; ++index, word = strtok_r(NULL, " ", &rest)) {
    if (index == 0) snprintf(card->thing.uuid, kText, "%s", word);
    if (index == 1) snprintf(card->thing.name, kText, "%s", word);
    if (index == 2)
      sscanf(word, "%x:%x:%x", &card->thing.domain, &card->thing.bus, &card->thing.device);
    if (index == 3) card->thing.mib = strtoull(word, NULL, 10);
    if (index < 4 || card->slots == kSlots) continue;
    Thing* instance = &card->instances[card->slots++];
    *instance = card->thing;
    sscanf(word, "%95[^/]/%u/%u/%llu", instance->uuid, &instance->gpu_instance,
           &instance->compute_instance, &instance->mib);
  }
}

int nvmlInit_v2(void) {
  const char* result = getenv("FAKE_NVML_INIT");
  if (result != NULL) return atoi(result);
  const char* described = getenv("FAKE_NVML");
  char* copy = strdup(described == NULL ? "" : described);
  num_cards = 0;
  char* rest = NULL;
  for (char* card = strtok_r(copy, ";", &rest); card != NULL && num_cards < kGpus;
       card = strtok_r(NULL, ";", &rest))
    read_card(card);
  free(copy);
  return kSuccess;
}

int nvmlShutdown(void) { return kSuccess; }

const char* nvmlErrorString(int result) {
  static char text[32];
  snprintf(text, sizeof(text), "fake error %d", result);
  return text;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = num_cards;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (strcmp(cards[index].thing.uuid, "denied") == 0) return kNoPermission;
  *handle = &cards[index];  // its first member is the Thing
  return kSuccess;
}

int nvmlDeviceGetUUID(void* handle, char* text, unsigned bytes) {
  snprintf(text, bytes, "%s", ((Thing*)handle)->uuid);
  return kSuccess;
}

int nvmlDeviceGetName(void* handle, char* text, unsigned bytes) {
  snprintf(text, bytes, "%s", ((Thing*)handle)->name);
  return kSuccess;
}

int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info) {
  const Thing* thing = handle;
  memset(info, 0, sizeof(*info));
  info->domain = thing->domain;
  info->bus = thing->bus;
  info->device = thing->device;
  return kSuccess;
}

int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  (void)handle;
  *major = 8;
  *minor = 0;
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* handle, MemoryInfo* info) {
  info->total = ((Thing*)handle)->mib << 20;
  info->free = info->total;
  info->used = 0;
  return kSuccess;
}

int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending) {
  *current = *pending = ((Card*)handle)->slots > 0;
  return *current ? kSuccess : kNotSupported;
}

int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count) {
  *count = ((Card*)handle)->slots;
  return kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** instance) {
  Thing* thing = &((Card*)handle)->instances[index];
  if (strcmp(thing->uuid, "-") == 0) return kNotFound;
  *instance = thing;
  return kSuccess;
}

int nvmlDeviceGetGpuInstanceId(void* handle, unsigned* id) {
  *id = ((Thing*)handle)->gpu_instance;
  return kSuccess;
}

int nvmlDeviceGetComputeInstanceId(void* handle, unsigned* id) {
  *id = ((Thing*)handle)->compute_instance;
  return kSuccess;
}

static unsigned index_of(void* handle) { return (unsigned)((Card*)handle - cards); }
static int is_quiet(void* handle) { return strcmp(((Thing*)handle)->name, "Quiet") == 0; }

typedef struct {
  unsigned version;
  unsigned long long total, reserved, free, used;
} MemoryInfo2;

int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryInfo2* info) {
  if (info->version != (sizeof(MemoryInfo2) | (2U << 24))) return kNotSupported;
  info->total = ((Thing*)handle)->mib << 20;
  info->used = (1000ULL + index_of(handle)) << 20;
  info->reserved = 300ULL << 20;
  info->free = info->total - info->used - info->reserved;
  return kSuccess;
}

typedef struct {
  unsigned gpu, memory;
} Utilization;

int nvmlDeviceGetUtilizationRates(void* handle, Utilization* busy) {
  if (is_quiet(handle)) return kNotSupported;
  busy->gpu = 90 - index_of(handle);
  busy->memory = 50;
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* celsius) {
  if (is_quiet(handle) || sensor != 0) return kNotSupported;
  *celsius = 40 + index_of(handle);
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  if (is_quiet(handle)) return kNotSupported;
  *milliwatts = 300500 + 1000 * index_of(handle);
  return kSuccess;
}
