/*
 * The time of day of a server under test: preloaded into all of its processes, it adds to the system's clock what a file says. Monotonic
 * clocks stay as they are.
 *
 * libfaketime does the same, but not for processes that are forked by a signal handler while select(2) waits, as PostgreSQL up to 15
 * starts its background workers: these keep the true time for ever.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char file[4096];

/* How many reads come between two after which the process is interrupted for 3 ms; 0 for no such reads. */
static unsigned long reads_between;

/* PostgreSQL overwrites its environment. */
__attribute__((constructor)) static void remember(void) {
    const char *name = getenv("PGSF_CLOCK");
    if (name && strlen(name) < sizeof file)
        strcpy(file, name);
    const char *between = getenv("PGSF_READS_BETWEEN_PAUSES");
    if (between)
        reads_between = strtoul(between, NULL, 10);
}

/* As a busy machine does: what was read is old when it is used. */
static void pause_now_and_then(void) {
    static _Thread_local unsigned long reads;
    struct timespec pause = {0, 3000000};
    if (reads_between && ++reads % reads_between == 0)
        syscall(SYS_nanosleep, &pause, NULL);
}

/* "+2.5s", "-10y" are added to the time. "2077-07-07 07:07:07" stands still, in UTC. */
static void change(struct timespec *now) {
    char text[64] = "";
    int opened = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    if (opened < 0)
        return;
    long length = syscall(SYS_read, opened, text, sizeof text - 1);
    syscall(SYS_close, opened);
    if (length <= 0)
        return;
    if (*text != '+' && *text != '-') {
        struct tm parts = {0};
        if (strptime(text, "%Y-%m-%d %H:%M:%S", &parts)) {
            now->tv_sec = timegm(&parts);
            now->tv_nsec = 0;
        }
        return;
    }
    char *unit;
    double seconds = strtod(text, &unit);
    switch (*unit) {
    case 'm': seconds *= 60; break;
    case 'h': seconds *= 3600; break;
    case 'd': seconds *= 86400; break;
    case 'y': seconds *= 365.0 * 86400; break;
    }
    long long nanos = now->tv_nsec + (long long)(seconds * 1e9) % 1000000000;
    now->tv_sec += (long long)(seconds * 1e9) / 1000000000;
    if (nanos >= 1000000000) {
        nanos -= 1000000000;
        now->tv_sec++;
    } else if (nanos < 0) {
        nanos += 1000000000;
        now->tv_sec--;
    }
    now->tv_nsec = nanos;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        change(now);
    if (clock == CLOCK_REALTIME)
        pause_now_and_then();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    if (zone)
        memset(zone, 0, sizeof(struct timezone));
    return 0;
}

time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds)
        *seconds = now.tv_sec;
    return now.tv_sec;
}
