/* The words of a line, read and written. */
#include "words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void stop(const char *why) {
    fprintf(stderr, "driver: %s\n", why);
    exit(1);
}

void *allocate(size_t bytes) {
    void *memory = calloc(bytes > 0 ? bytes : 1, 1);
    if (memory == NULL) {
        stop("no memory");
    }
    return memory;
}

static char *next_word(char **rest) {
    while (isspace((unsigned char)**rest)) {
        (*rest)++;
    }
    char *begin = *rest;
    while (**rest != '\0' && !isspace((unsigned char)**rest)) {
        (*rest)++;
    }
    if (**rest != '\0') {
        *(*rest)++ = '\0';
    }
    return begin;
}

char *word(struct words *words) {
    char *found = next_word(&words->rest);
    if (*found == '\0') {
        stop("a line is too short");
    }
    return found;
}

bool is_there(const struct words *words) {
    return words->rest[strspn(words->rest, " \n")] != '\0';
}

uint64_t number(struct words *words) {
    char *end = NULL;
    uint64_t value = strtoull(word(words), &end, 10);
    if (*end != '\0') {
        stop("a word is no number");
    }
    return value;
}

size_t handle(struct words *words) {
    char *found = word(words);
    return strcmp(found, "*") == 0 ? 0 : (size_t)strtoull(found, NULL, 10);
}

int64_t microseconds(struct words *words) {
    char *found = word(words);
    return strcmp(found, "-") == 0 ? -1 : (int64_t)strtoull(found, NULL, 10);
}

size_t limit(struct words *words, size_t usual) {
    char *found = word(words);
    return strcmp(found, "-") == 0 ? usual : (size_t)strtoull(found, NULL, 10);
}

static unsigned nibble(char digit) {
    return isdigit((unsigned char)digit) ? (unsigned)(digit - '0') : (unsigned)(digit - 'a') + 10;
}

struct bytes hex(const char *word) {
    if (*word != 'x') {
        stop("a word is no bytes");
    }
    size_t len = strlen(word + 1) / 2;
    /* A zero byte behind them makes text of a name. */
    struct bytes bytes = {allocate(len + 1), len};
    for (size_t at = 0; at < len; at++) {
        const char *pair = word + 1 + 2 * at;
        bytes.at[at] = (unsigned char)(nibble(pair[0]) << 4 | nibble(pair[1]));
    }
    return bytes;
}

void say(const char *format, ...) {
    va_list given;
    va_start(given, format);
    vprintf(format, given);
    va_end(given);
}

void say_hex(const void *bytes, size_t len) {
    const unsigned char *at = bytes;
    putchar('x');
    for (size_t i = 0; i < len; i++) {
        printf("%02x", at[i]);
    }
}

void end_answer(void) {
    putchar('\n');
    /* A suite that has closed its end sends no further calls. */
    fflush(stdout);
}

static const char *kind_of(int code) {
    switch (code) {
    case AYRE_PEER_LEFT:
        return "left";
    case AYRE_EXHAUSTED:
        return "exhausted";
    case AYRE_REJECTED:
        return "rejected";
    default:
        return "invalid";
    }
}

static void say_shape(const struct ayre_call_shape *of) {
    say("%u %u %u %u %u %llu ", of->collective, of->schedule, of->root, of->combine, of->number,
        (unsigned long long)of->bytes);
}

static void fail_mismatch(void) {
    struct ayre_mismatch details;
    if (ayre_error_mismatch(&details) != 1) {
        stop("a mismatch without details");
    }
    say("error mismatch %u %u %u ", details.peer, details.due, details.came);
    say_shape(&details.ours);
    if (details.theirs.collective != 0) {
        say_shape(&details.theirs);
    }
}

static void fail(int code) {
    if (code == AYRE_BUSY_MULTICAST || code == AYRE_BUSY_STREAM) {
        say("none");
    } else if (code <= AYRE_BUSY_MESSAGES && code >= AYRE_BUSY_LAST) {
        say("busy %d", AYRE_BUSY_MESSAGES - code);
    } else if (code <= AYRE_FAULT_UNKNOWN_KEY && code >= AYRE_FAULT_NO_MEMORY) {
        say("fault %d", AYRE_FAULT_UNKNOWN_KEY + 1 - code);
    } else if (code == AYRE_MISMATCH) {
        fail_mismatch();
    } else if (code == AYRE_GIVEN_UP) {
        say("error given_up %d", ayre_error_peer());
    } else if (code <= AYRE_STREAM_STAGE_FAILED && code >= AYRE_STREAM_CANCELLED) {
        say("error stream %d %d", AYRE_STREAM_STAGE_FAILED + 2 - code, ayre_error_peer());
    } else if (code <= AYRE_ENTRY_DENIED && code >= AYRE_ENTRY_UNKNOWN) {
        say("error entry %d %d", AYRE_ENTRY_DENIED + 1 - code, ayre_error_peer());
    } else if (code == AYRE_NO_MEMBER) {
        say("error outside");
    } else if (code == AYRE_UNREACHABLE) {
        say("error unreachable %d", ayre_error_peer());
    } else if (code == AYRE_UNKNOWN_OUTCOME) {
        say("error unknown %d", ayre_error_peer());
    } else if (code == AYRE_REFUSED) {
        say("error refused %d", ayre_error_peer());
    } else if (code == AYRE_PEER_DIED) {
        say("died %d", ayre_error_peer());
    } else if (code == AYRE_TIMED_OUT) {
        say("late");
    } else if (code == AYRE_SYSTEM) {
        say("error system %d %s", ayre_errno(), ayre_detail());
    } else {
        say("error %s %s", kind_of(code), ayre_detail());
    }
    end_answer();
}

bool done(int64_t code) {
    if (code >= 0) {
        say("ok ");
        return true;
    }
    fail((int)code);
    return false;
}

void answer(int64_t code) {
    if (done(code)) {
        end_answer();
    }
}

void answer_number(int64_t code) {
    if (done(code)) {
        say("%lld", (long long)code);
        end_answer();
    }
}

void answer_or_long(int64_t code) {
    if (code == AYRE_FAULT_TOO_LONG) {
        say("error long");
        end_answer();
    } else {
        answer(code);
    }
}
