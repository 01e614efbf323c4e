/* The words of a line, read and written: see conformance/src/driver.rs. */
#ifndef AYRE_DRIVER_WORDS_H
#define AYRE_DRIVER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ayre.h"

/* The rest of a line that is read word by word. */
struct words {
    char *rest;
};

/* Bytes with their length. */
struct bytes {
    unsigned char *at;
    size_t len;
};

/* The next word. A line that ends too early ends the driver: the suite sends none. */
char *word(struct words *words);
bool is_there(const struct words *words);
uint64_t number(struct words *words);
/* A number, where `*` stands for 0: the handle of another port. */
size_t handle(struct words *words);
/* Microseconds; -1 for ever. */
int64_t microseconds(struct words *words);
/* A number, where `-` stands for the usual one. */
size_t limit(struct words *words, size_t usual);
/* Hexadecimal digits behind an x. The bytes are freed by the caller. */
struct bytes hex(const char *word);

/* Ends the driver, with what the suite or the driver has done wrong. */
_Noreturn void stop(const char *why);
void *allocate(size_t bytes);

/* Parts of an answer, which `end_answer` sends. */
void say(const char *format, ...);
void say_hex(const void *bytes, size_t len);
void end_answer(void);

/* The answer to a call that has ended with this code; what was done if it is no error. True if it
 * was none. */
bool done(int64_t code);
/* Whole answers. */
void answer(int64_t code);
void answer_number(int64_t code);
/* Of a call by whose limit of its own something may be too long. */
void answer_or_long(int64_t code);

#endif
