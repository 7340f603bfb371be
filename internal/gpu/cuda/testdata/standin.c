// A stand-in for libcuda.so.1 that computes on the CPU. It runs the Go code of the driver where no
// GPU is, and is stricter than the real library: every call checks that the thread's context is the
// one of each stream, event, kernel and piece of memory that it names, that pieces lie within an
// allocation, and that nothing is used after its end. What is wrong is printed, counted and refused.
//
// Streams are threads that delay their work at random, so that work runs as asynchronously as on a
// GPU. Memory of the host that is not page-locked is copied before the call returns, as by the real
// library. It has the kernels of package drivertest only.
//
// Build: cc -shared -fPIC -O2 -o libcuda.so.1 standin.c -lpthread
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

enum {
  OK = 0, INVALID_VALUE = 1, OOM = 2, INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400,
  NOT_FOUND = 500, NOT_READY = 600, PEER_ENABLED = 704, LAUNCH_FAILED = 719
};
enum { DEVICES = 2, MAX_ARGS = 256, MEMORY = 1 << 30 };

typedef struct stream stream;
typedef struct { int device; i64 used; stream *streams; } context;
static context contexts[DEVICES] = {{.device = 0}, {.device = 1}};
static __thread context *current;
static int initialized, violations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all below, but not of the work of streams

static int wrong(const char *call, const char *what, int code) {
  __sync_add_and_fetch(&violations, 1);
  fprintf(stderr, "stand-in for libcuda: %s: %s\n", call, what);
  return code;
}
int cuStandinViolations(void) { return violations; }

#define ENTER()                                                              \
  if (!initialized) return wrong(__func__, "called before cuInit", INVALID_VALUE); \
  if (!current) return wrong(__func__, "the thread has no context", INVALID_CONTEXT)
#define SAME(object)                                                     \
  if ((object)->c != current) return wrong(__func__, #object " of another context", INVALID_CONTEXT)

// Allocations of devices and page-locked memory.
typedef struct { char *at; i64 size; context *c; int live; } block;
static block blocks[1 << 16];
static int nblocks;

static block *find(const char *p, i64 n) {
  for (int i = nblocks - 1; i >= 0; i--)
    if (p >= blocks[i].at && p + n <= blocks[i].at + blocks[i].size && blocks[i].live) return &blocks[i];
  return NULL;
}
// valid reports whether n bytes at p belong to a device.
static int valid(context *c, const char *p, i64 n) {
  if (n == 0) return 1;
  pthread_mutex_lock(&lock);
  block *b = find(p, n);
  int ok = b && b->c == c;
  pthread_mutex_unlock(&lock);
  return ok;
}
static int pinned(const char *p, i64 n) {
  pthread_mutex_lock(&lock);
  block *b = find(p, n);
  int ok = b && !b->c;
  pthread_mutex_unlock(&lock);
  return ok;
}
static char *allocate(i64 n, context *c) {
  pthread_mutex_lock(&lock);
  block *b = &blocks[nblocks];
  char *p = NULL;
  if (nblocks < (int)(sizeof blocks / sizeof *blocks) && (!c || c->used + n <= MEMORY)) {
    // Addresses are not used again, so that freed memory is recognized.
    p = aligned_alloc(256, (n + 255) / 256 * 256);
    memset(p, 0xa5, n);
    *b = (block){p, n, c, 1};
    nblocks++;
    if (c) c->used += n;
  }
  pthread_mutex_unlock(&lock);
  return p;
}
static int release(char *p, context *c) {
  pthread_mutex_lock(&lock);
  block *b = find(p, 1);
  int ok = b && b->at == p && b->c == c;
  if (ok) {
    b->live = 0;
    if (c) c->used -= b->size;
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

// Kernels compute all work items of a launch.
typedef struct { u32 grid[3], block[3]; void *args[MAX_ARGS]; context *c; } launch;
#define A(T, i) (*(T *)l->args[i])
#define P(T, i) ((T *)(A(char *, i) + A(i64, i + 1)))
#define NEED(i, n) if (!valid(l->c, (char *)P(char, i), n)) return wrong(__func__, "memory outside of allocations", LAUNCH_FAILED)
static int nothing(launch *l) { return OK; }
static int add(launch *l) {
  i64 n = A(i64, 6);
  NEED(0, 4 * n); NEED(2, 4 * n); NEED(4, 4 * n);
  for (i64 i = 0; i < n; i++) P(float, 0)[i] = P(float, 2)[i] + P(float, 4)[i];
  return OK;
}
static int arguments(launch *l) {
  NEED(0, 96);
  double *y = P(double, 0);
  y[0] = A(int, 2), y[1] = A(u32, 3), y[2] = A(i64, 4), y[3] = A(u64, 5), y[4] = A(float, 6), y[5] = A(double, 7);
  for (int i = 0; i < 5; i++) y[6 + i] = ((i64 *)l->args[8])[i];
  y[11] = l->grid[0] * l->block[0] + 1000. * l->grid[1] * l->block[1] + 1000000. * l->grid[2] * l->block[2];
  return OK;
}
static int groupsum(launch *l) {
  NEED(0, 4 * l->grid[0]); NEED(2, 4 * 128 * l->grid[0]);
  for (u32 g = 0; g < l->grid[0]; g++) {
    float s = 0;
    for (int i = 0; i < 128; i++) s += P(float, 2)[128 * g + i];
    P(float, 0)[g] = s;
  }
  return OK;
}
static int slow(launch *l) {
  NEED(0, 4);
  usleep(A(i64, 2) / 1000);
  P(u32, 0)[0]++;
  return OK;
}
static const struct { const char *name; int (*run)(launch *); int sizes[10]; } kernels[] = {
  {"nothing", nothing, {8, 8}},
  {"add", add, {8, 8, 8, 8, 8, 8, 8}},
  {"arguments", arguments, {8, 8, 4, 4, 8, 8, 4, 8, 40}},
  {"groupsum", groupsum, {8, 8, 8, 8}},
  {"slow", slow, {8, 8, 8}},
};

// Streams.
typedef struct { context *c; int timed, live; u64 recorded, done; double ms; } event;
typedef struct work {
  enum { RUN, COPY, FILL, RECORD, WAIT, END } kind;
  int kernel;
  launch l;
  char values[512];
  char *to; const char *from; i64 n; int value;
  event *e; u64 at;
  struct work *next;
} work;
struct stream {
  context *c;
  pthread_t thread;
  pthread_cond_t changed;
  work *first, **last;
  int busy, live;
  stream *next;
};
static pthread_cond_t events = PTHREAD_COND_INITIALIZER;
static int failure; // of work; stays

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
static void *run(void *arg) {
  stream *s = arg;
  unsigned seed = (unsigned)(uintptr_t)s;
  for (;;) {
    pthread_mutex_lock(&lock);
    s->busy = 0;
    pthread_cond_broadcast(&s->changed);
    while (!s->first) pthread_cond_wait(&s->changed, &lock);
    work *w = s->first;
    if (!(s->first = w->next)) s->last = &s->first;
    s->busy = 1;
    if (w->kind == WAIT)
      while (w->e->done < w->at) pthread_cond_wait(&events, &lock);
    pthread_mutex_unlock(&lock);
    int r = rand_r(&seed) % 4;
    if (r == 0) usleep(rand_r(&seed) % 200);
    int code = OK, kind = w->kind;
    switch (kind) {
    case RUN: code = kernels[w->kernel].run(&w->l); break;
    case COPY: memmove(w->to, w->from, w->n); break;
    case FILL: memset(w->to, w->value, w->n); break;
    case RECORD:
      pthread_mutex_lock(&lock);
      w->e->done = w->at, w->e->ms = now();
      pthread_cond_broadcast(&events);
      pthread_mutex_unlock(&lock);
    }
    if (code) {
      pthread_mutex_lock(&lock);
      failure = code;
      pthread_cond_broadcast(&events);
      pthread_mutex_unlock(&lock);
    }
    free(w);
    if (kind == END) {
      pthread_mutex_lock(&lock);
      s->busy = 0;
      pthread_cond_broadcast(&s->changed);
      pthread_mutex_unlock(&lock);
      return NULL;
    }
  }
}
static int queue(stream *s, work w) {
  if (!s->live) return wrong("stream", "used after its end", INVALID_HANDLE);
  if (failure) return failure;
  work *p = malloc(sizeof *p);
  *p = w;
  for (int i = 0; i < MAX_ARGS && w.l.args[i]; i++) p->l.args[i] = p->values + (intptr_t)w.l.args[i] - 1; // positions become addresses
  pthread_mutex_lock(&lock);
  p->next = NULL;
  *s->last = p, s->last = &p->next;
  s->busy = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&lock);
  return OK;
}
static void drain(stream *s) {
  pthread_mutex_lock(&lock);
  while (s->first || s->busy) pthread_cond_wait(&s->changed, &lock);
  pthread_mutex_unlock(&lock);
}

int cuInit(u32 f) { initialized = 1; return f ? INVALID_VALUE : OK; }
int cuDriverGetVersion(int *v) { *v = 12040; return OK; }
int cuDeviceGetCount(int *n) { *n = DEVICES; return OK; }
int cuDeviceGet(int *d, int i) { *d = i; return i < DEVICES ? OK : INVALID_VALUE; }
int cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "stand-in %d", d); return OK; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { snprintf(s, n, "0000:%02x:00.0", d + 1); return OK; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = MEMORY; return OK; }
int cuDeviceGetAttribute(int *v, int what, int d) {
  switch (what) {
  case 1: *v = 1024; break;
  case 8: *v = 49152; break;
  case 10: *v = 32; break;
  case 16: *v = 20; break;
  case 18: *v = 0; break;
  case 75: *v = 9; break;
  case 76: *v = 0; break;
  default: return INVALID_VALUE;
  }
  return OK;
}
int cuDevicePrimaryCtxRetain(context **c, int d) { *c = &contexts[d]; return OK; }
int cuCtxSetCurrent(context *c) { current = c; return OK; }
int cuDeviceCanAccessPeer(int *can, int d, int peer) { *can = d != peer; return OK; }
int cuCtxEnablePeerAccess(context *peer, u32 f) { ENTER(); return peer == current ? wrong(__func__, "own context", INVALID_VALUE) : OK; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { ENTER(); *free = MEMORY - current->used, *total = MEMORY; return OK; }
int cuMemAlloc_v2(char **p, size_t n) {
  ENTER();
  if (!n) return INVALID_VALUE;
  return n <= MEMORY && (*p = allocate(n, current)) ? OK : OOM;
}
int cuMemFree_v2(char *p) {
  ENTER();
  for (stream *s = current->streams; s; s = s->next) drain(s);
  return release(p, current) ? OK : wrong(__func__, "not an allocation of the context", INVALID_VALUE);
}
int cuMemHostAlloc(char **p, size_t n, u32 f) { ENTER(); *p = allocate(n, NULL); return *p ? OK : OOM; }
int cuMemFreeHost(char *p) { ENTER(); return release(p, NULL) ? OK : wrong(__func__, "not page-locked memory", INVALID_VALUE); }

typedef struct { context *c; char *text; } module;
int cuModuleLoadDataEx(module **m, const char *image, u32 n, const int *options, void **values) {
  ENTER();
  if (!strstr(image, ".target") || strstr(image, "nonsense")) {
    char *log = NULL;
    size_t size = 0;
    for (u32 i = 0; i < n; i++) {
      if (options[i] == 5) log = values[i];
      if (options[i] == 6) size = (size_t)(uintptr_t)values[i];
    }
    if (log) snprintf(log, size, "ptxas application ptx input, line 1; fatal : Parsing error near 'nonsense'");
    return INVALID_PTX;
  }
  *m = malloc(sizeof **m);
  **m = (module){current, strdup(image)};
  return OK;
}
typedef struct { context *c; int kernel; } function;
int cuModuleGetFunction(function **f, module *m, const char *name) {
  ENTER(); SAME(m);
  char entry[256];
  snprintf(entry, sizeof entry, ".entry %s(", name);
  if (strstr(m->text, entry))
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
      if (!strcmp(kernels[i].name, name)) {
        *f = malloc(sizeof **f);
        **f = (function){m->c, i};
        return OK;
      }
  return NOT_FOUND;
}
int cuStreamCreate(stream **s, u32 f) {
  ENTER();
  stream *n = *s = calloc(1, sizeof *n);
  n->c = current, n->last = &n->first, n->live = 1;
  pthread_cond_init(&n->changed, NULL);
  pthread_mutex_lock(&lock);
  n->next = current->streams, current->streams = n;
  pthread_mutex_unlock(&lock);
  return pthread_create(&n->thread, NULL, run, n);
}
int cuStreamSynchronize(stream *s) {
  ENTER(); SAME(s);
  if (!s->live) return wrong(__func__, "stream after its end", INVALID_HANDLE);
  drain(s);
  return failure;
}
int cuStreamDestroy_v2(stream *s) {
  ENTER(); SAME(s);
  int code = queue(s, (work){.kind = END});
  pthread_join(s->thread, NULL);
  s->live = 0;
  return code;
}
int cuLaunchKernel(function *f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, stream *s, void **args, void **extra) {
  ENTER(); SAME(f); SAME(s);
  if (!gx || !gy || !gz || !bx || !by || !bz || (u64)bx * by * bz > 1024 || shared || extra) return INVALID_VALUE;
  work w = {.kind = RUN, .kernel = f->kernel, .l = {{gx, gy, gz}, {bx, by, bz}, {0}, current}};
  int at = 0;
  for (int i = 0; kernels[f->kernel].sizes[i]; i++) { // arguments are copied during the call
    int n = kernels[f->kernel].sizes[i];
    memcpy(w.values + at, args[i], n);
    w.l.args[i] = (void *)(intptr_t)(at + 1);
    at += (n + 7) / 8 * 8;
  }
  return queue(s, w);
}
static int copy(const char *call, stream *s, char *to, context *tc, const char *from, context *fc, i64 n) {
  if (!current) return wrong(call, "the thread has no context", INVALID_CONTEXT);
  if (s->c != current) return wrong(call, "stream of another context", INVALID_CONTEXT);
  if (tc && !valid(tc, to, n) || fc && !valid(fc, from, n)) return wrong(call, "memory outside of allocations", INVALID_VALUE);
  int now = !tc && !pinned(to, n) || !fc && !pinned(from, n);
  int code = queue(s, (work){.kind = COPY, .to = to, .from = from, .n = n});
  if (now) drain(s);
  return code;
}
int cuMemcpyHtoDAsync_v2(char *d, const char *h, size_t n, stream *s) { return copy(__func__, s, d, s->c, h, NULL, n); }
int cuMemcpyDtoHAsync_v2(char *h, const char *d, size_t n, stream *s) { return copy(__func__, s, h, NULL, d, s->c, n); }
int cuMemcpyDtoDAsync_v2(char *d, const char *o, size_t n, stream *s) { return copy(__func__, s, d, s->c, o, s->c, n); }
int cuMemcpyPeerAsync(char *d, context *dc, const char *o, context *oc, size_t n, stream *s) { return copy(__func__, s, d, dc, o, oc, n); }
int cuMemsetD8Async(char *d, unsigned char v, size_t n, stream *s) {
  ENTER(); SAME(s);
  if (!valid(current, d, n)) return wrong(__func__, "memory outside of allocations", INVALID_VALUE);
  return queue(s, (work){.kind = FILL, .to = d, .value = v, .n = n});
}
int cuEventCreate(event **e, u32 f) { ENTER(); *e = calloc(1, sizeof **e); **e = (event){current, !(f & 2), 1}; return OK; }
#define LIVE(e) if (!(e)->live) return wrong(__func__, "event after its end", INVALID_HANDLE)
int cuEventRecord(event *e, stream *s) {
  ENTER(); SAME(e); SAME(s); LIVE(e);
  pthread_mutex_lock(&lock);
  u64 at = ++e->recorded;
  pthread_mutex_unlock(&lock);
  return queue(s, (work){.kind = RECORD, .e = e, .at = at});
}
int cuStreamWaitEvent(stream *s, event *e, u32 f) {
  ENTER(); SAME(s); LIVE(e);
  pthread_mutex_lock(&lock);
  u64 at = e->recorded;
  pthread_mutex_unlock(&lock);
  return queue(s, (work){.kind = WAIT, .e = e, .at = at});
}
int cuEventQuery(event *e) {
  ENTER(); SAME(e); LIVE(e);
  pthread_mutex_lock(&lock);
  int done = e->done == e->recorded;
  pthread_mutex_unlock(&lock);
  return failure ? failure : done ? OK : NOT_READY;
}
int cuEventSynchronize(event *e) {
  ENTER(); SAME(e); LIVE(e);
  pthread_mutex_lock(&lock);
  while (e->done != e->recorded && !failure) pthread_cond_wait(&events, &lock);
  pthread_mutex_unlock(&lock);
  return failure;
}
int cuEventElapsedTime(float *ms, event *a, event *b) {
  ENTER(); SAME(a); SAME(b); LIVE(a); LIVE(b);
  if (!a->timed || !b->timed) return wrong(__func__, "event without time", INVALID_HANDLE);
  if (a->done != a->recorded || b->done != b->recorded) return NOT_READY;
  *ms = b->ms - a->ms;
  return OK;
}
int cuEventDestroy_v2(event *e) { LIVE(e); e->live = 0; return OK; }
int cuGetErrorName(int code, const char **s) {
  *s = code == OOM ? "CUDA_ERROR_OUT_OF_MEMORY" : code == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : code == INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
     : code == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR";
  return OK;
}
int cuGetErrorString(int code, const char **s) { *s = "error of the stand-in"; return OK; }
