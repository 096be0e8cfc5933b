/*
 * A resolver whose name servers are away: preloaded into a server under test, it never answers for names that end in ".away".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    const char *end = name ? strrchr(name, '.') : NULL;
    if (end && !strcmp(end, ".away"))
        sleep(3600);
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    return next(name, service, hints, found);
}
