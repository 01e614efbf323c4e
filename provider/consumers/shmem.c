/*
 * OpenSHMEM's operations, each checked: puts, gets, atomics, a lock, a reduction, pointers.
 *
 * usage: oshrun -n N shmem; says "all is right" once for each processing element.
 */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 1000, LONG = 100000 };

static long counter, flag, sum, mine, locked, in_lock;
static long sync_words[SHMEM_REDUCE_SYNC_SIZE];
static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static double row[LONG];
static int wrong;

static void check(int is_right, const char *what)
{
    if (!is_right) {
        printf("%s is wrong at %d\n", what, shmem_my_pe());
        wrong = 1;
    }
}

/* Each writes a number to all, on the heap, and a row to the next one. */
static void puts_and_gets(int me, int count)
{
    static double out[LONG], back[LONG];
    long *heap = shmem_malloc(count * sizeof *heap);
    int next = (me + 1) % count, last = (me + count - 1) % count;

    /* Not shmem_calloc: Open MPI 4.1 clears what others have put there already. */
    memset(heap, 0, count * sizeof *heap);
    shmem_barrier_all();
    for (int pe = 0; pe < count; pe++)
        shmem_long_p(&heap[me], me + 1, pe);
    for (int i = 0; i < LONG; i++)
        out[i] = me * 1e6 + i;
    shmem_double_put(row, out, LONG, next);
    shmem_barrier_all();
    for (int pe = 0; pe < count; pe++)
        check(heap[pe] == pe + 1, "a number that was put");
    for (int i = 0; i < LONG; i++)
        check(row[i] == last * 1e6 + i, "a row that was put");
    shmem_double_get(back, row, LONG, next);
    check(memcmp(back, out, sizeof out) == 0, "a row that was got");
    check(shmem_long_g(&heap[next], last) == next + 1, "a number that was got");
    long *other = shmem_ptr(heap, next);
    check(other == NULL || other[me] == me + 1, "memory at a pointer");
    shmem_barrier_all();
    shmem_free(heap);
}

/* All count at once, and one of them sets the flag. */
static void atomics(int me, int count)
{
    long won;

    for (int i = 0; i < ROUNDS; i++)
        shmem_long_atomic_inc(&counter, 0);
    for (int i = 0; i < ROUNDS; i++)
        shmem_long_atomic_fetch_add(&counter, 2, 0);
    won = shmem_long_atomic_compare_swap(&flag, 0, me + 1, 0) == 0;
    for (int i = 0; i < 20; i++) {
        shmem_set_lock(&locked);
        long seen = shmem_long_g(&in_lock, 0);
        shmem_long_p(&in_lock, seen + 1, 0);
        shmem_quiet();
        shmem_clear_lock(&locked);
    }
    shmem_barrier_all();
    check(shmem_long_g(&counter, 0) == 3L * ROUNDS * count, "the counter");
    check(shmem_long_g(&in_lock, 0) == 20L * count, "the number below the lock");
    mine = won;
    shmem_barrier_all();
    shmem_long_sum_to_all(&sum, &mine, 1, 0, 0, count, work, sync_words);
    check(sum == 1, "the number of those who have set the flag");
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), count = shmem_n_pes();

    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        sync_words[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    puts_and_gets(me, count);
    atomics(me, count);
    shmem_barrier_all();
    if (!wrong)
        printf("all is right\n");
    fflush(stdout);
    shmem_finalize();
    return wrong;
}
