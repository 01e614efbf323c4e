// A library that spoils what TCP brings: the last byte of each read of a thousand bytes or more. It
// stands in for Ayre's, to show that the checks of programs see such a thing.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_tcp(int descriptor) {
    int error = errno, domain = 0, type = 0;
    socklen_t size = sizeof domain;
    int known = getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0;
    size = sizeof type;
    known = known && getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    errno = error;
    return known && type == SOCK_STREAM && (domain == AF_INET || domain == AF_INET6);
}

static ssize_t spoil(int descriptor, const struct iovec *parts, int count, ssize_t got) {
    if (got < 1000 || !is_tcp(descriptor)) {
        return got;
    }
    size_t last = (size_t)got - 1;
    for (int i = 0; i < count; i++) {
        if (last < parts[i].iov_len) {
            ++((unsigned char *)parts[i].iov_base)[last];
            break;
        }
        last -= parts[i].iov_len;
    }
    return got;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int descriptor, void *bytes, size_t size) {
    struct iovec part = {bytes, size};
    return spoil(descriptor, &part, 1, NEXT(read)(descriptor, bytes, size));
}

ssize_t __read_chk(int descriptor, void *bytes, size_t size, size_t room) {
    (void)room;
    return read(descriptor, bytes, size);
}

ssize_t recv(int descriptor, void *bytes, size_t size, int flags) {
    struct iovec part = {bytes, size};
    return spoil(descriptor, &part, 1, NEXT(recv)(descriptor, bytes, size, flags));
}

ssize_t recvfrom(int descriptor, void *bytes, size_t size, int flags,
                 struct sockaddr *restrict from, socklen_t *restrict length) {
    struct iovec part = {bytes, size};
    ssize_t got = NEXT(recvfrom)(descriptor, bytes, size, flags, from, length);
    return spoil(descriptor, &part, 1, got);
}

ssize_t readv(int descriptor, const struct iovec *parts, int count) {
    return spoil(descriptor, parts, count, NEXT(readv)(descriptor, parts, count));
}

ssize_t recvmsg(int descriptor, struct msghdr *message, int flags) {
    ssize_t got = NEXT(recvmsg)(descriptor, message, flags);
    return spoil(descriptor, message->msg_iov, (int)message->msg_iovlen, got);
}
